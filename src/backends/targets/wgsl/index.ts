/** WGSL: a module for each launch. */

import { type Expr, isOne } from '../../../ir/expressions/expr.ts'
import type { Kernel3 } from '../../../ir/statements/loops.ts'
import { computeType } from '../../../ir/values/dtype.ts'
import { BLOCK_INDICES, blockDecode, isMultiDimensional, operand } from '../../grid-folding.ts'
import { argsOf, type LaunchUse, launchUses } from '../../launch-uses.ts'
import { shareAcrossBranches } from '../../memory/shared-memory-liveness.ts'
import type { PrintedModule } from '../../module.ts'
import { capabilitiesOf } from '../../print/instr-calls.ts'
import { lengthOf, printerOf } from '../../print/printer.ts'
import { Mangler, reservedWords } from '../../print/reserved-words.ts'
import type { Helpers } from '../../print/spellings.ts'
import type { Target } from '../../target.ts'
import { vectorAccesses } from '../../vectors/vectorize-accesses.ts'
import { splitBranches } from './branch-splitting.ts'
import { HELPERS } from './helpers.ts'
import { rejectDeepNesting, rejectF64 } from './limits.ts'
import { type Wgsl, wgsl } from './spellings.ts'

/** Diagnostic rules of the uniformity analysis, by extension. */
const UNIFORMITY: Readonly<Record<string, string>> = {
  subgroups: 'subgroup_uniformity',
  chromium_experimental_subgroup_matrix: 'chromium.subgroup_matrix_uniformity',
}

/**
 * Prints a launch of Stage III as WGSL. Each launch has a module, because a binding has one type in a module. Buffers are bindings
 * 0 … n-1 of group 0 in the order of the entry's arguments. Scalars share one uniform block, the next binding.
 */
function wgslModule(plan: Kernel3, use: LaunchUse, target: Wgsl): PrintedModule {
  const launch = shareAcrossBranches(use.launch)
  const helpers: Helpers = new Map()
  const mangler = new Mangler(reserved())
  const entry = mangler.unique(launch.name)
  const args = argsOf(use)
  const fields = new Map(use.scalars.map((p) => [p.name, mangler.name(`${p.name}`)]))
  const bools = new Set(use.scalars.filter((p) => p.dtype === 'bool').map((p) => p.name))
  const param = (name: string): string | undefined =>
    fields.has(name)
      ? bools.has(name)
        ? `(params.${fields.get(name)} != 0u)`
        : `params.${fields.get(name)}`
      : undefined
  const printer = printerOf(
    { target, mangler, helpers, buffers: new Map(plan.buffers.map((b) => [b.name, b])), param },
    launch,
  )
  const body = printer.body(launch.body, '  ')
  const bindings = use.buffers.map(({ buffer, access }, k) => {
    const ref = printer.refOf(buffer.name)
    return `@group(0) @binding(${k}) var<storage, ${access}> ${ref.name}: ${target.elements.arrayType(ref)};`
  })
  const block =
    use.scalars.length === 0
      ? []
      : [
          `struct Params {\n${use.scalars.map((p) => `  ${fields.get(p.name)}: ${p.dtype === 'bool' ? 'u32' : target.type(computeType(p.dtype))},`).join('\n')}\n}`,
          `@group(0) @binding(${use.buffers.length}) var<uniform> params: Params;`,
        ]
  const shared = [...new Set(printer.shared.map((b) => b.name))].map((name) => {
    const ref = printer.refOf(name)
    return `var<workgroup> ${ref.name}: ${target.elements.arrayType(ref, lengthOf(ref.buffer))};`
  })
  const print = (e: Expr): string => printer.expr(e)
  const extents = launch.grid.filter((e) => !isOne(e))
  const linear = extents.length > 0
  const axes = blockDecode(launch.grid, print, body)
  const isPlane = isMultiDimensional(launch.grid)
  const product = extents.map((e) => operand(e, print)).join(' * ')
  const indent = isPlane ? '    ' : '  '
  const foldedDecode = [
    // A grid beyond the limit of one dimension is folded into two; excess blocks return.
    `${indent}let linear = i32(group.x + group.y * groups.x);`,
    `${indent}if (linear >= ${product}) {`,
    `${indent}  return;`,
    `${indent}}`,
    ...axes.map(({ axis, value }) => `${indent}${isPlane ? '' : 'let '}${axis} = ${value('linear')};`),
  ]
  const mismatches = launch.grid.map((e, d) => `i32(groups.${'xyz'[d]}) != ${operand(e, print)}`)
  const prologue = isPlane
    ? [
        ...axes.map(({ axis }) => `  var ${axis} = i32(group.${axis.slice(-1)});`),
        `  if (${mismatches.join(' || ')}) {`,
        ...foldedDecode,
        '  }',
      ]
    : linear
      ? foldedDecode
      : axes.map(({ axis, value }) => `  let ${axis} = ${value('linear')};`)
  const usesLocal = body.some((l) => l.includes('local.'))
  const inputs = [
    ...(usesLocal ? ['@builtin(local_invocation_id) local: vec3<u32>'] : []),
    ...(linear
      ? ['@builtin(workgroup_id) group: vec3<u32>', '@builtin(num_workgroups) groups: vec3<u32>']
      : []),
  ]
  const usesF16 = [...bindings, ...shared, ...helpers.values()].some((l) => /\bf16\b/.test(l))
  const capabilities = capabilitiesOf(use, 'wgsl')
  const extensions = new Set([
    ...(usesF16 ? ['f16'] : []),
    ...(body.some((l) => l.includes('subgroupShuffleXor(')) ? ['subgroups'] : []),
    // Capabilities with arguments are properties of the device, not extensions.
    ...capabilities.map((c) => c.name).filter((name) => !name.includes('(')),
  ])
  // The compiler has checked that threads execute an instruction together; the analysis of WGSL covers uniformity in blocks only.
  const rules = capabilities.flatMap((c) => UNIFORMITY[c.name] ?? [])
  const directives = [
    ...[...extensions].map((name) => `enable ${name};`),
    ...rules.map((rule) => `diagnostic(off, ${rule});`),
  ]
  const text = [
    ...(directives.length > 0 ? [directives.join('\n')] : []),
    ...block,
    bindings.join('\n'),
    ...(shared.length > 0 ? [shared.join('\n')] : []),
    ...helpers.values(),
    [
      `@compute @workgroup_size(${launch.block.join(', ')})`,
      `fn ${entry}(${inputs.join(', ')}) {`,
      ...prologue,
      ...body,
      '}',
    ].join('\n'),
  ].join('\n\n')
  return {
    name: launch.name,
    text: `${text}\n`,
    entries: [{ name: entry, args, block: launch.block, sharedBytes: 0 }],
    ...(capabilities.length > 0 && { capabilities }),
  }
}

// Reserved words of generated WGSL.

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

const reserved = reservedWords(LANGUAGE, [wgsl(false), wgsl(true)], HELPERS, [
  ...BLOCK_INDICES,
  'Params',
  'params',
  'local',
  'group',
  'groups',
  'linear',
])

export const WGSL = {
  scheduleDevice: 'webgpu',
  parallel: true,
  grid: true,
  extension: '.wgsl',
  lowering: {},
  reusesShared: false,
  declared: {
    addresses: false,
    needs: new Map([
      ['f16', 0],
      ['subgroups', 0],
      ['lanes', 1],
      ['subgroup_size', 1],
      ['subgroup_matrix', 5],
    ]),
  },
  print: (plan, options) => {
    rejectF64(plan)
    rejectDeepNesting(plan)
    const table = wgsl(options.f16 ?? launchUses(plan).some(needsF16))
    const split = splitBranches(vectorAccesses(plan, table))
    return launchUses(split).map((use) => wgslModule(split, use, table))
  },
} as const satisfies Target

const needsF16 = (use: LaunchUse): boolean => capabilitiesOf(use, 'wgsl').some((c) => c.name === 'f16')
