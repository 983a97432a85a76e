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
import { Printer, SHARED_ALIGN, sharedAlign } from '../printer.ts'
import type { Helpers, Target } from '../target.ts'
import { CUDA, CUDA_MEMORY } from '../targets/cuda.ts'

export function cudaModule(plan: Plan, uses: readonly LaunchUse[]): ModuleText {
  const helpers: Helpers = new Map()
  const kernels: string[] = []
  const entries: Entry[] = []
  const buffers = new Map(plan.buffers.map((b) => [b.name, b]))
  for (const use of uses) {
    const { launch } = use
    const mangler = new Mangler(CUDA.reserved)
    const entry = mangler.unique(launch.name)
    const shared = sharedMemory(launch)
    const target = shared.bytes > STATIC_LIMIT ? shared.dynamic : CUDA
    const printer = new Printer({ target, mangler, helpers, buffers, param: () => undefined }, launch)
    const args = argsOf(use)
    const parameters = args.map((a) => {
      const name = mangler.name(a.name)
      if (a.kind === 'scalar') return `${CUDA.type(a.dtype)} ${name}`
      return `${a.access === 'read' ? 'const ' : ''}${CUDA_MEMORY[a.dtype]}* __restrict__ ${name}`
    })
    const sharedBytes = target === CUDA ? 0 : shared.bytes
    kernels.push(kernelText(launch, entry, parameters, printer, sharedBytes > 0 ? shared.align : 0))
    entries.push({ name: entry, args, block: launch.block, sharedBytes })
  }
  return {
    target: 'cuda',
    name: plan.name,
    text: `${[...helpers.values(), ...kernels].join('\n\n')}\n`,
    entries,
    ...newest(uses, 'cuda'),
  }
}

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
    ...(dynamic > 0 ? [`  extern __shared__ __align__(${dynamic}) unsigned char shared_memory[];`] : []),
    ...decode,
    ...body,
    '}',
  ].join('\n')
}
