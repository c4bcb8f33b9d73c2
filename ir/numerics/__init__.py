"""Special functions of float64 arrays in plain NumPy: full double precision, no loop over elements.

Functions take and return float64 arrays, keep NaN, and give torch's values at poles and bounds.
They may divide by zero or overflow on the way: callers silence NumPy's warnings.

Note [Cephes]
    Modules that say so derive from the Cephes Math Library, Copyright (c) 2018, Steven Moshier,
    all rights reserved, under the 3-clause BSD license:
    Redistribution and use in source and binary forms, with or without modification, are permitted
    provided that the following conditions are met: (1) Redistributions of source code must retain
    the above copyright notice, this list of conditions and the following disclaimer. (2)
    Redistributions in binary form must reproduce the above copyright notice, this list of
    conditions and the following disclaimer in the documentation and/or other materials provided
    with the distribution. (3) Neither the name of the copyright holder nor the names of its
    contributors may be used to endorse or promote products derived from this software without
    specific prior written permission.
    THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS" AND ANY EXPRESS OR
    IMPLIED WARRANTIES, INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND
    FITNESS FOR A PARTICULAR PURPOSE ARE DISCLAIMED. IN NO EVENT SHALL STEVEN MOSHIER BE LIABLE FOR
    ANY DIRECT, INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES (INCLUDING, BUT
    NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR SERVICES; LOSS OF USE, DATA, OR PROFITS; OR
    BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN CONTRACT,
    STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE
    OF THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.
"""
