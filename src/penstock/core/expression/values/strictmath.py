"""exp, log, log10 and pow to the last bit as Java's StrictMath gives them, which Spark calls.

The C library's functions round differently in about one case of ten, so the same formula would give
two answers. StrictMath is defined as the freely distributable library "fdlibm" (Sun Microsystems,
1993); these functions take its steps - the same reductions, the same polynomials, in the same
order - with Python's doubles. They take about a microsecond.
"""

import math
import struct

__all__ = ["exp", "log", "log10", "power"]

_INFINITY = math.inf
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_INVERSE_LN2 = 1.44269504088896338700e00
_EXP_OVERFLOW, _EXP_UNDERFLOW = 7.09782712893383973096e02, -7.45133219101941108420e02
_P1, _P2, _P3, _P4, _P5 = (
    1.66666666666666019037e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
    -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)
_LG1, _LG2, _LG3, _LG4, _LG5, _LG6, _LG7 = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)
_INVERSE_LN10 = 4.34294481903251816668e-01
_LOG10_2_HIGH, _LOG10_2_LOW = 3.01029995663611771306e-01, 3.69423907715893078616e-13

_HALF_LN2_WORD, _LN2_3_HALVES_WORD, _TINY_WORD = 0x3FD62E42, 0x3FF0A2B2, 0x3E300000
_TWO54 = 2.0**54
_LEAST_NORMAL_EXPONENT = -1021


def _words(x: float) -> tuple[int, int]:
    """Return the upper word, signed, and the lower word of a double."""
    high, low = struct.unpack(">iI", struct.pack(">d", x))
    return high, low


def _from_words(high: int, low: int) -> float:
    value: float = struct.unpack(">d", struct.pack(">II", high & 0xFFFFFFFF, low))[0]
    return value


def _cut(x: float) -> float:
    """Return the double without its lower word."""
    return _from_words(_words(x)[0], 0)


def exp(x: float) -> float:  # noqa: PLR0911 - fdlibm's own branches
    """Return e to the power of x."""
    if x != x:  # noqa: PLR0124 - only NaN is not itself
        return x
    if x > _EXP_OVERFLOW:
        return _INFINITY
    if x < _EXP_UNDERFLOW:
        return 0.0
    size = _words(x)[0] & 0x7FFFFFFF
    k, high, low = 0, 0.0, 0.0
    if size > _HALF_LN2_WORD:
        if size < _LN2_3_HALVES_WORD:
            k = -1 if x < 0 else 1
        else:
            k = int(_INVERSE_LN2 * x + (-0.5 if x < 0 else 0.5))
        high, low = x - k * _LN2_HIGH, k * _LN2_LOW
        x = high - low
    elif size < _TINY_WORD:
        return 1.0 + x
    t = x * x
    c = x - t * (_P1 + t * (_P2 + t * (_P3 + t * (_P4 + t * _P5))))
    if k == 0:
        return 1.0 - ((x * c) / (c - 2.0) - x)
    y = 1.0 - ((low - (x * c) / (2.0 - c)) - high)
    if k >= _LEAST_NORMAL_EXPONENT:
        return math.ldexp(y, k) if k != 1024 else y * 2.0 * 2.0**1023  # noqa: PLR2004
    return math.ldexp(y, k + 1000) * 2.0**-1000


def log(x: float) -> float:  # noqa: PLR0911 - fdlibm's own branches
    """Return the natural logarithm of x, which is above zero or NaN."""
    if x != x or x == _INFINITY:  # noqa: PLR0124
        return x
    k = 0
    high, low = _words(x)
    if high < 0x00100000:  # noqa: PLR2004 - a subnormal number
        k -= 54
        high, low = _words(x * _TWO54)
    k += (high >> 20) - 1023
    high &= 0x000FFFFF
    i = (high + 0x95F64) & 0x100000
    f = _from_words(high | (i ^ 0x3FF00000), low) - 1.0
    k += i >> 20
    dk = float(k)
    if (0x000FFFFF & (2 + high)) < 3:  # noqa: PLR2004 - |f| below 2**-20
        if f == 0.0:
            return 0.0 if k == 0 else dk * _LN2_HIGH + dk * _LN2_LOW
        r = f * f * (0.5 - 0.33333333333333333 * f)
        return f - r if k == 0 else dk * _LN2_HIGH - ((r - dk * _LN2_LOW) - f)
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    t1 = w * (_LG2 + w * (_LG4 + w * _LG6))
    t2 = z * (_LG1 + w * (_LG3 + w * (_LG5 + w * _LG7)))
    r = t2 + t1
    if ((high - 0x6147A) | (0x6B851 - high)) > 0:
        half = 0.5 * f * f
        if k == 0:
            return f - (half - s * (half + r))
        return dk * _LN2_HIGH - ((half - (s * (half + r) + dk * _LN2_LOW)) - f)
    if k == 0:
        return f - s * (f - r)
    return dk * _LN2_HIGH - ((s * (f - r) - dk * _LN2_LOW) - f)


def log10(x: float) -> float:
    """Return the logarithm of x to base 10; x is above zero or NaN."""
    if x != x or x == _INFINITY:  # noqa: PLR0124
        return x
    k = 0
    high, low = _words(x)
    if high < 0x00100000:  # noqa: PLR2004 - a subnormal number
        k -= 54
        high, low = _words(x * _TWO54)
    k += (high >> 20) - 1023
    i = 1 if k < 0 else 0
    y = float(k + i)
    z = y * _LOG10_2_LOW + _INVERSE_LN10 * log(
        _from_words((high & 0x000FFFFF) | ((0x3FF - i) << 20), low)
    )
    return z + y * _LOG10_2_HIGH


_L1, _L2, _L3, _L4, _L5, _L6 = (
    5.99999999999994648725e-01,
    4.28571428578550184252e-01,
    3.33333329818377432918e-01,
    2.72728123808534006489e-01,
    2.30660745775561754067e-01,
    2.06975017800338417784e-01,
)
_LG2_WHOLE, _LG2_HIGH, _LG2_LOW = (
    6.93147180559945286227e-01,
    6.93147182464599609375e-01,
    -1.90465429995776804525e-09,
)
_CP, _CP_HIGH, _CP_LOW = (
    9.61796693925975554329e-01,
    9.61796700954437255859e-01,
    -7.02846165095275826516e-09,
)
_IV, _IV_HIGH, _IV_LOW = (
    1.44269504088896338700e00,
    1.44269502162933349609e00,
    1.92596299112661746887e-08,
)
_DP_HIGH, _DP_LOW = 5.84962487220764160156e-01, 1.35003920212974897128e-08
_OVERFLOW_TAIL = 8.0085662595372944372e-17


def power(x: float, y: float) -> float:
    """Return x to the power of y."""
    if y == 0.0:
        return 1.0
    if x != x or y != y:  # noqa: PLR0124
        return math.nan
    special = _special_power(x, y)
    if special is not None:
        return special
    odd = _is_odd(y)
    if x < 0 and odd is None:
        return math.nan
    sign = -1.0 if x < 0 and odd else 1.0
    size = abs(x)
    if abs(y) > 2.0**31:
        found = _huge_power(size, y)
        if isinstance(found, float):
            return sign * found
        high, low = found
    else:
        high, low = _log2(size)
    return _two_to(y, high, low, sign)


def _is_odd(y: float) -> bool | None:
    """Return whether a whole number is odd; None where it is not a whole number."""
    if y != math.floor(y):
        return None
    return math.fmod(y, 2.0) != 0.0


def _special_power(x: float, y: float) -> float | None:  # noqa: PLR0911 - one for each case
    size = abs(x)
    if abs(y) == _INFINITY:
        if size == 1.0:
            return math.nan
        return abs(y) if (size > 1.0) == (y > 0) else 0.0
    if abs(y) == 1.0:
        return x if y > 0 else (1.0 / x if x else math.copysign(_INFINITY, x))
    if y == 2.0:  # noqa: PLR2004
        return x * x
    if y == 0.5 and x >= 0:  # noqa: PLR2004
        return math.sqrt(x + 0.0)
    if size not in (0.0, 1.0, _INFINITY):
        return None
    if y < 0:
        size = _INFINITY if size == 0.0 else 1.0 / size
    if math.copysign(1.0, x) > 0:
        return size
    odd = _is_odd(y)
    if size == 1.0 and odd is None:
        return math.nan
    return -size if odd else size


def _huge_power(size: float, y: float) -> float | tuple[float, float]:
    """Return the power where y is past 2**31: it leaves the range, or x is almost 1."""
    if size < 0.9999995231628418:  # noqa: PLR2004
        return _INFINITY if y < 0 else 0.0
    if size > 1.0000009536743162:  # noqa: PLR2004
        return _INFINITY if y > 0 else 0.0
    t = size - 1.0
    w = (t * t) * (0.5 - t * (0.3333333333333333333333 - t * 0.25))
    u = _IV_HIGH * t
    v = t * _IV_LOW - w * _IV
    high = _cut(u + v)
    return high, v - (high - u)


def _log2(size: float) -> tuple[float, float]:
    """Return the logarithm of a positive number to base 2 as a short double and the rest of it."""
    n = 0
    high, low = _words(size)
    if high < 0x00100000:  # noqa: PLR2004 - a subnormal number
        n -= 53
        high, low = _words(size * 2.0**53)
    n += (high >> 20) - 0x3FF
    j = high & 0x000FFFFF
    high = j | 0x3FF00000
    if j <= 0x3988E:  # noqa: PLR2004 - below sqrt(3/2)
        k = 0
    elif j < 0xBB67A:  # noqa: PLR2004 - below sqrt(3)
        k = 1
    else:
        k = 0
        n += 1
        high -= 0x00100000
    x = _from_words(high, low)
    bp = 1.5 if k else 1.0
    u, v = x - bp, 1.0 / (x + bp)
    ss = u * v
    s_high = _cut(ss)
    t_high = _from_words(((high >> 1) | 0x20000000) + 0x00080000 + (k << 18), 0)
    t_low = x - (t_high - bp)
    s_low = v * ((u - s_high * t_high) - s_high * t_low)
    s2 = ss * ss
    r = s2 * s2 * (_L1 + s2 * (_L2 + s2 * (_L3 + s2 * (_L4 + s2 * (_L5 + s2 * _L6)))))
    r += s_low * (s_high + ss)
    s2 = s_high * s_high
    t_high = _cut(3.0 + s2 + r)
    t_low = r - ((t_high - 3.0) - s2)
    u, v = s_high * t_high, s_low * t_high + t_low * ss
    p_high = _cut(u + v)
    p_low = v - (p_high - u)
    z_high = _CP_HIGH * p_high
    z_low = _CP_LOW * p_high + p_low * _CP + (_DP_LOW if k else 0.0)
    t = float(n)
    dp_high = _DP_HIGH if k else 0.0
    first = _cut(((z_high + z_low) + dp_high) + t)
    return first, z_low - (((first - t) - dp_high) - z_high)


def _two_to(y: float, high: float, low: float, sign: float) -> float:
    """Return the sign times 2 to the power of y * (high + low)."""
    y1 = _cut(y)
    p_low = (y - y1) * high + y * low
    p_high = y1 * high
    z = p_low + p_high
    word, rest = _words(z)
    if word >= 0x40900000 and (  # noqa: PLR2004 - z is 1024 or more
        (word, rest) != (0x40900000, 0) or p_low + _OVERFLOW_TAIL > z - p_high
    ):
        return sign * _INFINITY
    if (word & 0x7FFFFFFF) >= 0x4090CC00 and (  # noqa: PLR2004 - |z| is 1075 or more
        (word & 0xFFFFFFFF, rest) != (0xC090CC00, 0) or p_low <= z - p_high
    ):
        return sign * 0.0
    size = word & 0x7FFFFFFF
    k = (size >> 20) - 0x3FF
    n = 0
    if size > 0x3FE00000:  # noqa: PLR2004 - |z| is above 0.5
        moved = (word & 0xFFFFFFFF) + (0x00100000 >> (k + 1))
        k = ((moved & 0x7FFFFFFF) >> 20) - 0x3FF
        t = _from_words(moved & ~(0x000FFFFF >> k), 0)
        n = ((moved & 0x000FFFFF) | 0x00100000) >> (20 - k)
        n = -n if word < 0 else n
        p_high -= t
    t = _cut(p_low + p_high)
    u = t * _LG2_HIGH
    v = (p_low - (t - p_high)) * _LG2_WHOLE + t * _LG2_LOW
    z = u + v
    w = v - (z - u)
    t = z * z
    t1 = z - t * (_P1 + t * (_P2 + t * (_P3 + t * (_P4 + t * _P5))))
    r = (z * t1) / (t1 - 2.0) - (w + z * w)
    return sign * math.ldexp(1.0 - (r - z), n)
