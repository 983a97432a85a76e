/** Conversion of launches into commands of a device: arguments and grid. */
import { invariant } from '../../../../ast/diagnostics/diagnostic.ts'
import { physicalGrid } from '../../../../backends/grid-folding.ts'
import type { ArgValue, Command, Device } from '../../../../runtime/device.ts'
import { type LaunchSpec, THREADS } from '../kernels/column-types.ts'
import { END } from './batch-launches.ts'
import { BLOCK, type Kernel } from './kernel-cache.ts'

/** One launch of `kernel`, compiled for at least as many launches as `specs`. */
export function commandOf(
  device: Device,
  { module, entry, args }: Kernel,
  specs: readonly LaunchSpec[],
): Command {
  const { shared } = specs[0]!
  const ends: number[] = []
  let threads = 0
  for (const spec of specs) {
    threads += shared ? spec.threads : Math.ceil(spec.threads / BLOCK) * BLOCK
    ends.push(threads)
  }
  if (specs.length === 1) threads = specs[0]!.threads
  const blocks = shared ? threads : Math.ceil(threads / BLOCK)
  const grid =
    device.kind === 'cpu' ? ([1, 1, 1] as const) : physicalGrid([blocks, 1, 1], device.limits.maxGridDim)
  invariant(grid, `${blocks} blocks are more than a grid holds`)
  const values: ArgValue[] = []
  for (const { kind, name, launch: of } of args) {
    // Unused launches of the kernel get no threads.
    const spec = specs[of]
    const column = kind === 'size' ? undefined : (spec ?? specs[0]!).columns[name]!.column
    if (column) values.push(kind === 'buffer' ? column.memory : column.length)
    else if (name === END) values.push(ends[of] ?? threads)
    else if (name === THREADS) values.push(of < 0 ? threads : (spec?.threads ?? 0))
    else {
      const value = (spec ?? specs[0]!).sizes?.[name]
      invariant(value !== undefined, `${specs[0]!.key}: no size ${name}`)
      values.push(value)
    }
  }
  return { kind: 'launch', module, entry, grid, args: values }
}
