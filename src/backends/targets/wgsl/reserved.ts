/** Reserved words of generated WGSL. */
import { reservedWords } from '../../print/reserved-words.ts'
import { HELPERS } from './helpers.ts'
import { wgsl } from './spellings.ts'

/** Keywords, reserved words, and predeclared names of the language. */
const LANGUAGE = `
alias break case const const_assert continue continuing default diagnostic discard else enable false fn for
if let loop override requires return struct switch true var while NULL Self abstract active alignas alignof
as asm asm_fragment async attribute auto await become cast catch class co_await co_return co_yield coherent
column_major common compile compile_fragment concept const_cast consteval constexpr constinit crate debugger
decltype delete demote demote_to_helper do dynamic_cast enum explicit export extends extern external
fallthrough filter final finally friend from fxgroup get goto groupshared highp impl implements import
inline instanceof interface layout lowp macro macro_rules match mediump meta mod module move mut mutable
namespace new nil noexcept noinline nointerpolation non_coherent noncoherent noperspective null nullptr of
operator package packoffset partition pass patch pixelfragment precise precision premerge priv protected pub
public readonly ref regardless register reinterpret_cast require resource restrict self set shared sizeof
smooth snorm static static_assert static_cast std subroutine super target template this thread_local throw
trait try type typedef typeid typename typeof union unless unorm unsafe unsized use using varying virtual
volatile wgsl where with writeonly yield array atomic bool f16 f32 i32 u32 mat2x2 mat2x3 mat2x4 mat3x2
mat3x3 mat3x4 mat4x2 mat4x3 mat4x4 vec2 vec3 vec4 ptr sampler texture_1d texture_2d bitcast all any select
abs acos asin atan ceil clamp cos cosh cross degrees determinant distance dot exp exp2 floor fma fract
inverseSqrt ldexp length log log2 max min mix modf normalize pow radians reflect refract round sign sin sinh
smoothstep sqrt step tan tanh transpose trunc workgroupBarrier storageBarrier atomicAdd atomicLoad
atomicStore main function private storage uniform workgroup read write read_write quantizeToF16 fwidth dpdx
dpdy asinh acosh atanh atan2 faceForward outerProduct saturate pack4x8snorm pack4xI8 unpack4xI8 dot4I8Packed
countOneBits countLeadingZeros countTrailingZeros reverseBits extractBits insertBits firstLeadingBit
firstTrailingBit arrayLength workgroupUniformLoad textureBarrier atomicSub atomicMax atomicMin atomicAnd
atomicOr atomicXor atomicExchange atomicCompareExchangeWeak subgroupAdd subgroupShuffleXor vec2f vec3f vec4f
vec2i vec3i vec4i vec2u vec3u vec4u vec2h vec3h vec4h`

export const reserved = reservedWords(LANGUAGE, [wgsl(false), wgsl(true)], HELPERS, [
  'block_x',
  'block_y',
  'block_z',
  'Params',
  'params',
  'local',
  'group',
  'groups',
  'linear',
])
