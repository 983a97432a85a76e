/** CUDA C++: one module of kernels. */

import type { Expr } from '../../../ir/expressions/expr.ts'
import { readsOf, writesOf } from '../../../ir/statements/accesses.ts'
import type { Kernel3, Launch } from '../../../ir/statements/loops.ts'
import { hasBarrier } from '../../../ir/statements/tree.ts'
import { BLOCK_INDICES, blockDecode, isMultiDimensional, operand } from '../../grid-folding.ts'
import type { LaunchUse, MatrixUse } from '../../launch-uses.ts'
import { argsOf, launchUses, matricesOf, matrixName } from '../../launch-uses.ts'
import { allocateShared, type SharedMemory } from '../../memory/shared-memory-liveness.ts'
import type { ArgSpec, Entry, PrintedModule } from '../../module.ts'
import { newestRequirement } from '../../print/instr-calls.ts'
import { type Printer, printerOf } from '../../print/printer.ts'
import { Mangler, reservedWords } from '../../print/reserved-words.ts'
import type { Helpers, Spellings } from '../../print/spellings.ts'
import type { Target } from '../../target.ts'
import { vectorAccesses } from '../../vectors/vectorize-accesses.ts'
import { MEMORY } from '../c-family.ts'
import { HELPERS, MATRIX, OVERLAP } from './helpers.ts'
import { rejectCudaSharedOverflow, rejectRegisterOverflow } from './limits.ts'
import { buffersMergedWithUpdates } from './merged-loads.ts'
import { insertWait, overlapsOf, rawStatement } from './programmatic-dependent-launch.ts'
import { SPELLINGS, WARP } from './spellings.ts'

export const CUDA = {
  scheduleDevice: 'cuda',
  parallel: true,
  grid: true,
  extension: '.cu',
  lowering: { lanes: WARP },
  reusesShared: true,
  declared: { addresses: true, alternative: '`cuda from 9.0`: the least version of the device' },
  print: (plan, { wide }) => {
    const vectors = vectorAccesses(plan, SPELLINGS)
    return [cudaModule(vectors, launchUses(vectors), wide)]
  },
} as const satisfies Target

// Reserved words of generated CUDA code.

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

const reserved = reservedWords(LANGUAGE, [SPELLINGS], HELPERS, [
  ...BLOCK_INDICES,
  'shared_memory',
  MATRIX.name,
  OVERLAP.begin.name,
  OVERLAP.wait.name,
])

/** Prints Stage III as CUDA C++: one `extern "C"` kernel for each launch. */
function cudaModule(plan: Kernel3, uses: readonly LaunchUse[], wide = false): PrintedModule {
  const helpers: Helpers = new Map()
  const kernels: string[] = []
  const entries: Entry[] = []
  const buffers = new Map(plan.buffers.map((b) => [b.name, b]))
  const overlaps = overlapsOf(plan)
  for (const [k, use] of uses.entries()) {
    const { leads, dependent } = overlaps[k]!
    const waitingLaunch = dependent
      ? { ...use.launch, body: insertWait(use.launch.body, dependent, WAIT) }
      : use.launch
    const shared = allocateShared(waitingLaunch)
    const { launch } = shared
    rejectCudaSharedOverflow(launch, shared.bytes)
    rejectRegisterOverflow(launch)
    if (leads) helpers.set(OVERLAP.begin.name, OVERLAP.begin.text)
    if (dependent) helpers.set(OVERLAP.wait.name, OVERLAP.wait.text)
    const mangler = new Mangler(reserved())
    const entry = mangler.unique(launch.name)
    const target = shared.bytes > STATIC_LIMIT || shared.reused ? withDynamicShared(shared) : SPELLINGS
    const matrices = matricesOf(launch)
    const names = new Map(matrices.map((m) => [matrixName(m), mangler.unique(`${m.buffer}_matrix`)]))
    const matrix = (m: MatrixUse): string => names.get(matrixName(m))!
    const context = { target, mangler, helpers, buffers, param: () => undefined, matrix, wide }
    const printer = printerOf(context, launch)
    const args = [
      ...argsOf(use),
      ...matrices.map((m): ArgSpec => {
        const { dtype } = buffers.get(m.buffer)!
        return { kind: 'matrix', name: matrix(m), buffer: m.buffer, dtype, matrix: m.matrix }
      }),
    ]
    if (matrices.length > 0) helpers.set(MATRIX.name, MATRIX.text)
    const aliased = new Set([
      ...(dependent ?? []),
      ...exchangedBuffers(launch),
      ...buffersMergedWithUpdates(launch, buffers),
    ])
    const parameters = args.map((a) => {
      if (a.kind === 'matrix') return `const __grid_constant__ ${MATRIX.name} ${a.name}`
      const name = mangler.name(a.name)
      if (a.kind === 'scalar') return `${SPELLINGS.type(a.dtype)} ${name}`
      // Another launch or thread may write these buffers concurrently. Without `__restrict__`, loads are not moved before the
      // wait or the barrier.
      const restrict = aliased.has(a.name) ? '' : '__restrict__ '
      return `${a.access === 'read' ? 'const ' : ''}${MEMORY[a.dtype]}* ${restrict}${name}`
    })
    const sharedBytes = target === SPELLINGS ? 0 : shared.bytes
    const align = sharedBytes > 0 ? shared.align : 0
    kernels.push(kernelText(launch, entry, parameters, printer, align, leads))
    const waits = dependent ? { waits: true } : {}
    const cluster = launch.cluster ? { cluster: [launch.cluster, 1, 1] as const } : {}
    entries.push({ name: entry, args, block: launch.block, sharedBytes, ...cluster, ...waits })
  }
  return {
    name: plan.name,
    text: `${[...helpers.values(), ...kernels].join('\n\n')}\n`,
    entries,
    ...newestRequirement(uses, 'cuda'),
  }
}

/** Buffers through which threads of a launch may exchange values: read and written, in a launch with a barrier. */
function exchangedBuffers({ body }: Launch): ReadonlySet<string> {
  if (!hasBarrier(body)) return new Set()
  const written = writesOf(body)
  return new Set([...readsOf(body)].filter((b) => written.has(b)))
}

const WAIT = rawStatement('cuda', `${OVERLAP.wait.name}();`)

/** Maximum bytes of statically declared shared memory; larger amounts are requested at launch. */
const STATIC_LIMIT = 48 * 1024

/** Spellings with shared arrays at offsets of one dynamic array. */
const withDynamicShared = ({ offsets }: SharedMemory): Spellings => ({
  ...SPELLINGS,
  shared: (name, dtype, _length, _align, buffer) => {
    const type = MEMORY[dtype]
    return `${type}* const ${name} = (${type}*)(shared_memory + ${offsets.get(buffer)});`
  },
})

/** Decodes the block's position in the grid. */
function decodeText(
  { grid }: Launch,
  print: (e: Expr) => string,
  body: readonly string[],
): readonly string[] {
  const linear = '(int)blockIdx.x'
  const axes = blockDecode(grid, print, body)
  if (!isMultiDimensional(grid))
    return axes.map(({ axis, value }) => `  const int ${axis} = ${value(linear)};`)
  if (axes.length === 0) return []
  return [
    ...axes.map(({ axis }) => `  int ${axis} = (int)blockIdx.${axis.slice(-1)};`),
    `  if ((int)gridDim.x != ${operand(grid[0], print)}) {`,
    ...axes.map(({ axis, value }) => `    ${axis} = ${value(linear)};`),
    '  }',
  ]
}

function kernelText(
  launch: Launch,
  name: string,
  parameters: readonly string[],
  printer: Printer,
  /** Alignment of dynamic shared memory in bytes; 0 if there is none. */
  sharedAlign: number,
  /** True if the next launch may begin early. */
  leads: boolean,
): string {
  const threads = launch.block.reduce((a, b) => a * b, 1)
  const body = printer.body(launch.body, '  ')
  const decode = decodeText(launch, (e) => printer.expr(e), body)
  return [
    `extern "C" __global__ void __launch_bounds__(${threads}) ${name}(`,
    `  ${parameters.join(',\n  ')}`,
    ') {',
    ...(leads ? [`  ${OVERLAP.begin.name}();`] : []),
    ...(sharedAlign > 0
      ? [`  extern __shared__ __align__(${sharedAlign}) unsigned char shared_memory[];`]
      : []),
    ...decode,
    ...body,
    '}',
  ].join('\n')
}
