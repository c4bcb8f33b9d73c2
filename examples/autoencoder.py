"""Draws digits: a variational autoencoder of generated pictures.

python examples/autoencoder.py [--steps 800]
"""

from __future__ import annotations

import plotting
import wengert as torch
import wengert.nn.functional as F
from glyphs import SIZE, digits
from running import Progress, count_parameters, maybe_compiled, options, summary
from wengert import nn
from wengert.distributions import Normal, kl_divergence

CODE = 6


class Autoencoder(nn.Module):
    """Pictures to normal distributions of codes, codes to pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Flatten(), nn.Linear(SIZE * SIZE, 96), nn.SiLU(), nn.Linear(96, 2 * CODE)
        )
        self.decoder = nn.Sequential(
            nn.Linear(CODE, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU(),
            nn.Linear(96, SIZE * SIZE), nn.Unflatten(1, (1, SIZE, SIZE)),
        )  # fmt: skip

    def codes(self, images: torch.Tensor) -> Normal:
        """The distribution of codes for each picture."""
        mean, spread = self.encoder(images).chunk(2, dim=1)
        # spread is finite by construction, so checks would only slow the step down
        return Normal(mean, F.softplus(spread) + 1e-4, validate_args=False)


def main() -> None:
    chosen = options("draws digits", steps=800, name="autoencoder")
    images, _ = digits(1024, noise=0.05)
    model = Autoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    def step(batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        optimizer.zero_grad()
        codes = model.codes(batch)
        scores = model.decoder(codes.rsample())
        error = F.binary_cross_entropy_with_logits(scores, batch, reduction="sum")
        prior = Normal(torch.zeros(CODE), torch.ones(CODE), validate_args=False)
        information = kl_divergence(codes, prior).sum()
        ((error + information) / len(batch)).backward()
        optimizer.step()
        return error.detach() / len(batch), information.detach() / len(batch)

    step = maybe_compiled(step, chosen)
    errors, nats, progress = [], [], Progress(chosen.steps)
    for _ in progress:
        error, information = step(images[torch.randint(len(images), (64,))])
        errors.append(error.item())
        nats.append(information.item())
        progress.note(error=errors[-1], kl=nats[-1])
    with torch.no_grad():
        again = model.decoder(model.codes(images[:8]).mean).sigmoid()
        drawn = model.decoder(torch.randn(16, CODE)).sigmoid()
    shown = [image[0].tolist() for group in (images[:8], again, drawn) for image in group]
    plotting.save(
        chosen.plot,
        plotting.Axes("training", "step", "nats per picture")
        .line(plotting.smooth(errors), label="reconstruction")
        .line(plotting.smooth(nats), label="divergence"),
        plotting.Images(shown, 8, "given, reconstructed, and drawn (two rows)"),
    )
    summary("autoencoder", parameters=count_parameters(model), steps=chosen.steps,
            first_bound=errors[0] + nats[0], last_bound=errors[-1] + nats[-1],
            seconds=progress.seconds(), plot=chosen.plot)  # fmt: skip


if __name__ == "__main__":
    main()
