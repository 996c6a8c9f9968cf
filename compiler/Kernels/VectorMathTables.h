// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Polynomials of VectorMath, lowest coefficient first, as tools/fit-vector-math.py prints
// them; the errors are relative to the function's value.
#ifndef WEFT_COMPILER_KERNELS_VECTORMATHTABLES_H
#define WEFT_COMPILER_KERNELS_VECTORMATHTABLES_H

namespace weft::vector_math {

/// exp(x) = 1 + x + x^2 p(x), -0.347 <= x <= 0.347; error 0.05 * 2^-24.
constexpr float expTail[] = {
    0.499999940f, 0.166665211f, 0.0416682735f, 0.00836868584f, 0.00138201355f,
};

/// 2^x = 1 + x p(x), -0.5 <= x <= 0.5; error 0.05 * 2^-24.
constexpr float exp2Tail[] = {
    0.693147182f, 0.240226477f, 0.0555035956f, 0.00961850304f, 0.00133909972f, 0.000153278030f,
};

/// expm1(x) = x + x^2 p(x), -0.347 <= x <= 0.347; error 0.01 * 2^-24.
constexpr float expm1Tail[] = {
    0.500000000f, 0.166666657f, 0.0416664928f, 0.00833354425f, 0.00139323424f, 0.000197633970f,
};

/// log(1 + x) = x + x^2 p(x), -0.293 <= x <= 0.414; error 0.07 * 2^-24.
constexpr float logTail[] = {
    -0.499999881f, 0.333333254f,  -0.250016004f, 0.200019613f,   -0.166087180f,
    0.141822726f,  -0.132463440f, 0.129014179f,  -0.0760925934f,
};

/// tanh(x) = x + x^3 p(x^2), 0 <= x <= 0.625; error 0.08 * 2^-24.
constexpr float tanhTail[] = {
    -0.333332807f, 0.133314088f, -0.0537370592f, 0.0206308626f, -0.00569625339f,
};

/// erf(x) = x + x p(x^2), 0 <= x <= 0.93; error 0.29 * 2^-24.
constexpr float erfNear[] = {
    0.128379151f, -0.376124889f, 0.112817310f, -0.0267629661f, 0.00498735253f, -0.000595958380f,
};

/// log(1 - erf(x)) = -x + x p(x), 0.92 <= x <= 3.95; error 0.01 * 2^-24.
constexpr float erfFar[] = {
    -0.128648490f,   -0.635151327f,   -0.106236845f,    0.0237620194f,
    -0.00364242936f, 0.000322793669f, -1.12298903e-05f,
};

/// 1 - erf(x) = 2^(x p(x)), 0 <= x <= 3.95; error 0.27 * 2^-24.
constexpr float bellSlope[] = {
    -1.62790859f,     -0.918416440f,   -0.148481473f,   0.0282534640f,
    -0.000774434127f, -0.00148955209f, 0.000445544574f, -4.53641405e-05f,
};

/// sin(x) = x + x^3 p(x^2), 0 <= x <= 0.793; error 0.07 * 2^-24.
constexpr float sinTail[] = {
    -0.166666538f,
    0.00833210722f,
    -0.000195080735f,
};

/// cos(x) = 1 - x^2 / 2 + x^4 p(x^2), 0 <= x <= 0.793; error 0.00 * 2^-24.
constexpr float cosTail[] = {
    0.0416666456f,
    -0.00138872978f,
    2.44300882e-05f,
};

/// sinh(x) = x + x^3 p(x^2), 0 <= x <= 1; error 0.01 * 2^-24.
constexpr float sinhTail[] = {
    0.166666672f,
    0.00833331048f,
    0.000198428956f,
    2.78221319e-06f,
};

/// asin(x) = x + x^3 p(x^2), 0 <= x <= 0.5; error 0.08 * 2^-24.
constexpr float asinTail[] = {
    0.166667521f, 0.0749531016f, 0.0454690196f, 0.0241855029f, 0.0421570130f,
};

/// atan(x) = x + x^3 p(x^2), 0 <= x <= 1; error 0.04 * 2^-24.
constexpr float atanTail[] = {
    -0.333332986f, 0.199985310f,   -0.142640516f, 0.109511755f,    -0.0840048045f,
    0.0579066873f, -0.0311271884f, 0.0108874794f, -0.00178757648f,
};

/// log2((1 + x) / (1 - x)) = x p(x^2), 0 <= x <= 0.172; error 0.00 * 2^-34.
constexpr double log2OfRatio[] = {
    2.8853900817778499,  0.96179669411326851, 0.57707794242475208,
    0.41220924341545379, 0.31990614524165623, 0.28289298364904075,
};

/// 2^x = 1 + x p(x), -0.5 <= x <= 0.5; error 0.80 * 2^-34.
constexpr double wideExp2Tail[] = {
    0.69314718070453873,   0.24022651066566711,    0.055504103659732823,   0.0096180381315261812,
    0.0013333935077399000, 0.00015466756439227192, 1.5196149972142811e-05,
};

/// Where functions change from one form to the other, inside both fitted intervals.
constexpr float tanhNearBelow = 0.625f;
constexpr float erfNearBelow = 0.925f;
constexpr float sinhNearBelow = 1.0f;

/// Where 2^(x p(x)) of bellSlope has the exponent -127.
constexpr float bellVanishes = 7.052f;

} // namespace weft::vector_math

#endif
