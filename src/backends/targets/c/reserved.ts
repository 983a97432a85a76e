/** Reserved words of generated C. */
import { reservedWords } from '../../print/reserved-words.ts'
import { HELPERS } from './helpers.ts'
import { C } from './spellings.ts'

/** Keywords of C11, names of the included headers, and builtin functions of compilers. */
const LANGUAGE = `
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof bool
true false main NAN INFINITY HUGE_VAL HUGE_VALF HUGE_VALL FP_NAN FP_INFINITE FP_NORMAL FP_SUBNORMAL FP_ZERO
FP_ILOGB0 FP_ILOGBNAN MATH_ERRNO MATH_ERREXCEPT math_errhandling isnan isinf isfinite isnormal signbit fpclassify
float_t double_t MAXFLOAT M_PI M_E linux unix abort abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos
cosh erf erfc exit exp exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb labs ldexp lgamma llrint
llround log log10 log1p log2 logb lrint lround malloc free calloc memcpy memset modf nan nearbyint nextafter
nexttoward pow printf puts remainder remquo rint round scalbln scalbn sin sinh sqrt strlen tan tanh tgamma trunc j0 j1
jn y0 y1 yn gamma drem finite significand scalb signgam`

export const reserved = reservedWords(LANGUAGE, [C], HELPERS, [])
