/** Stage III → CUDA C++: one `extern "C"` kernel for each launch. The physical grid is one-dimensional. */
import type { Expr } from '../../ir/expr.ts'
import type { Launch, Plan } from '../../ir/loops.ts'
import { argsOf, type LaunchUse } from '../emit.ts'
import { blockDecode } from '../grid.ts'
import { Mangler } from '../mangle.ts'
import type { Entry, ModuleText } from '../module.ts'
import { Printer } from '../printer.ts'
import type { Helpers } from '../target.ts'
import { CUDA, CUDA_MEMORY } from '../targets/cuda.ts'

export function cudaModule(plan: Plan, uses: readonly LaunchUse[]): ModuleText {
  const helpers: Helpers = new Map()
  const kernels: string[] = []
  const entries: Entry[] = []
  const buffers = new Map(plan.buffers.map((b) => [b.name, b]))
  for (const use of uses) {
    const { launch } = use
    const mangler = new Mangler(CUDA.reserved)
    const entry = mangler.name(launch.name)
    const printer = new Printer({ target: CUDA, mangler, helpers, buffers, param: () => undefined }, launch)
    const args = argsOf(use)
    const parameters = args.map((a) => {
      const name = mangler.name(a.name)
      if (a.kind === 'scalar') return `${CUDA.type(a.dtype)} ${name}`
      return `${a.access === 'read' ? 'const ' : ''}${CUDA_MEMORY[a.dtype]}* __restrict__ ${name}`
    })
    kernels.push(kernelText(launch, entry, parameters, printer))
    entries.push({ name: entry, args, block: launch.block, sharedBytes: 0 })
  }
  return {
    target: 'cuda',
    name: plan.name,
    text: `${[...helpers.values(), ...kernels].join('\n\n')}\n`,
    entries,
  }
}

function kernelText(launch: Launch, name: string, parameters: readonly string[], printer: Printer): string {
  const threads = launch.block.reduce((a, b) => a * b, 1)
  const body = printer.body(launch.body, '  ')
  const decode = blockDecode(launch.grid, (e: Expr) => printer.expr(e), body).map(
    ({ axis, value }) => `  const int ${axis} = ${value('(int)blockIdx.x')};`,
  )
  return [
    `extern "C" __global__ void __launch_bounds__(${threads}) ${name}(`,
    `  ${parameters.join(',\n  ')}`,
    ') {',
    ...decode,
    ...body,
    '}',
  ].join('\n')
}
