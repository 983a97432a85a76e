/** Reserved words of generated CUDA code. */
import { reservedWords } from '../../print/reserved-words.ts'
import { HELPERS, MATRIX, OVERLAP } from './helpers.ts'
import { CUDA } from './spellings.ts'

/** Reserved words of C++, built-in names of CUDA, and macros of the headers that NVRTC and nvcc include implicitly. */
const LANGUAGE = `
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class
compl concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype
default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline
int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
register reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch
template this thread_local throw true try typedef typeid typename typeof union unsigned using virtual void volatile
wchar_t while xor xor_eq blockIdx blockDim threadIdx gridDim warpSize main linux unix NULL NAN EOF INFINITY
BUFSIZ MAXFLOAT NZERO NFDBITS SNAN SNANF SNANL HUGE_VAL RAND_MAX M_PI M_E FP_NAN FP_ZERO FP_NORMAL INT_MAX
INT_MIN UINT_MAX LONG_MAX LONG_MIN ULONG_MAX CHAR_MAX CHAR_MIN CHAR_BIT SHRT_MAX SHRT_MIN SEEK_SET SEEK_CUR
SEEK_END BIG_ENDIAN LITTLE_ENDIAN BYTE_ORDER PATH_MAX NAME_MAX TMP_MAX EXIT_SUCCESS EXIT_FAILURE stdin
stdout stderr errno assert math_errhandling`

export const reserved = reservedWords(LANGUAGE, [CUDA], HELPERS, [
  'block_x',
  'block_y',
  'block_z',
  'shared_memory',
  MATRIX.name,
  OVERLAP.begin.name,
  OVERLAP.wait.name,
])
