/** Stage III → CUDA C++: one `extern "C"` kernel for each launch. The physical grid is one-dimensional. */
import { invariant } from '../../ast/diagnostic.ts'
import { DTYPE_BYTES } from '../../ir/dtype.ts'
import type { Expr } from '../../ir/expr.ts'
import type { Launch, Plan } from '../../ir/loops.ts'
import { walkStmts } from '../../ir/tree.ts'
import { argsOf, type LaunchUse } from '../emit.ts'
import { blockDecode } from '../grid.ts'
import { newest } from '../instr-calls.ts'
import { Mangler } from '../mangle.ts'
import type { Entry, ModuleText } from '../module.ts'
import { overlapsOf, plainText, withWait } from '../overlap.ts'
import { Printer, SHARED_ALIGN, sharedAlign } from '../printer.ts'
import type { Helpers, Target } from '../target.ts'
import { CUDA, CUDA_MEMORY, OVERLAP } from '../targets/cuda.ts'

export function cudaModule(plan: Plan, uses: readonly LaunchUse[]): ModuleText {
  const helpers: Helpers = new Map()
  const kernels: string[] = []
  const entries: Entry[] = []
  const buffers = new Map(plan.buffers.map((b) => [b.name, b]))
  const overlaps = overlapsOf(plan)
  for (const [k, use] of uses.entries()) {
    const { leads, held } = overlaps[k]!
    const launch = held ? { ...use.launch, body: withWait(use.launch.body, held, WAIT) } : use.launch
    if (leads) helpers.set(OVERLAP.begin.name, OVERLAP.begin.text)
    if (held) helpers.set(OVERLAP.wait.name, OVERLAP.wait.text)
    const mangler = new Mangler(CUDA.reserved)
    const entry = mangler.unique(launch.name)
    const shared = sharedMemory(launch)
    const target = shared.bytes > STATIC_LIMIT ? shared.dynamic : CUDA
    const printer = new Printer({ target, mangler, helpers, buffers, param: () => undefined }, launch)
    const args = argsOf(use)
    const parameters = args.map((a) => {
      const name = mangler.name(a.name)
      if (a.kind === 'scalar') return `${CUDA.type(a.dtype)} ${name}`
      // What another launch changes while this one runs is not this pointer's alone: its loads stay behind the wait.
      const alone = held?.has(a.name) ? '' : '__restrict__ '
      return `${a.access === 'read' ? 'const ' : ''}${CUDA_MEMORY[a.dtype]}* ${alone}${name}`
    })
    const sharedBytes = target === CUDA ? 0 : shared.bytes
    const align = sharedBytes > 0 ? shared.align : 0
    kernels.push(kernelText(launch, entry, parameters, printer, align, leads))
    const waits = held ? { waits: true } : {}
    entries.push({ name: entry, args, block: launch.block, sharedBytes, ...waits })
  }
  return {
    target: 'cuda',
    name: plan.name,
    text: `${[...helpers.values(), ...kernels].join('\n\n')}\n`,
    entries,
    ...newest(uses, 'cuda'),
  }
}

const WAIT = plainText('cuda', `${OVERLAP.wait.name}();`)

/** Bytes of shared memory that declarations in the text may take; more is given at launch. */
const STATIC_LIMIT = 48 * 1024

/** How much shared memory a launch uses, and the target that carves it out of one dynamic array. */
function sharedMemory(launch: Launch): {
  readonly bytes: number
  readonly align: number
  readonly dynamic: Target
} {
  const offsets: number[] = []
  let bytes = 0
  let most = SHARED_ALIGN
  walkStmts(launch.body, (s) => {
    if (s.kind !== 'alloc' || s.buffer.scope !== 'shared') return
    const align = sharedAlign(s.buffer)
    bytes = Math.ceil(bytes / align) * align
    offsets.push(bytes)
    const length = s.buffer.shape[0]
    invariant(length?.kind === 'const', `the length of ${s.buffer.name} is not constant`)
    bytes += length.value * DTYPE_BYTES[s.buffer.dtype]
    most = Math.max(most, align)
  })
  const next = offsets.values()
  return {
    bytes,
    align: most,
    dynamic: {
      ...CUDA,
      // Allocations are printed in the order they are met here.
      shared: (name, dtype) => {
        const type = CUDA_MEMORY[dtype]
        return `${type}* const ${name} = (${type}*)(shared_memory + ${next.next().value});`
      },
    },
  }
}

function kernelText(
  launch: Launch,
  name: string,
  parameters: readonly string[],
  printer: Printer,
  /** What dynamic shared memory is aligned to; 0 where there is none. */
  dynamic: number,
  /** Whether the next launch may begin. */
  leads: boolean,
): string {
  const threads = launch.block.reduce((a, b) => a * b, 1)
  const body = printer.body(launch.body, '  ')
  const decode = blockDecode(launch.grid, (e: Expr) => printer.expr(e), body).map(
    ({ axis, value }) => `  const int ${axis} = ${value('(int)blockIdx.x')};`,
  )
  return [
    `extern "C" __global__ void __launch_bounds__(${threads}) ${name}(`,
    `  ${parameters.join(',\n  ')}`,
    ') {',
    ...(leads ? [`  ${OVERLAP.begin.name}();`] : []),
    ...(dynamic > 0 ? [`  extern __shared__ __align__(${dynamic}) unsigned char shared_memory[];`] : []),
    ...decode,
    ...body,
    '}',
  ].join('\n')
}
