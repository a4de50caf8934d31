"""exp, log, log10 and pow: the last bit is Java's. The values were taken from a JVM."""

import math

import pytest

from penstock.core.expression.values.strictmath import exp, log, log10, power


@pytest.mark.parametrize(
    ("found", "java"),
    [
        (exp(1.0), "0x1.5bf0a8b14576ap+1"),
        (exp(0.5), "0x1.a61298e1e069cp+0"),
        (exp(709.782712893384), "0x1.fffffffffff2ap1023"),
        (exp(709.79), math.inf),
        (exp(-745.2), 0.0),
        (exp(-math.inf), 0.0),
        (log(10.0), "0x1.26bb1bbb55516p+1"),
        (log(5e-324), "-0x1.74385446d71c3p+9"),
        (log10(1000.0), 3.0),
        (log10(2.0), "0x1.34413509f79ffp-2"),
        (power(2.0, 0.5), math.sqrt(2.0)),
        (power(10.0, -1.0), 0.1),
        (power(1.1, 7.3), "0x1.00abbdb22bbdfp1"),
        (power(3.0, 20.5), "0x1.67f837b99213cp32"),
        (power(-8.0, 1 / 3), math.nan),
        (power(-2.0, 3.0), -8.0),
        (power(-0.0, -3.0), -math.inf),
        (power(1.0, math.inf), math.nan),
        (power(math.nan, 0.0), 1.0),
        (power(1e308, 2.0), math.inf),
        (power(0.9999999999, 1e12), "0x1.a8c10ad7ecedcp-145"),
    ],
)
def test_the_last_bit_is_java_s(found: float, java: float | str):
    expected = float.fromhex(java) if isinstance(java, str) else java

    assert found == expected or (math.isnan(found) and math.isnan(expected))


@pytest.mark.parametrize("function", [exp, log, log10])
def test_nan_stays_nan(function):
    assert math.isnan(function(math.nan))
