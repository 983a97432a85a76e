/**
 * Binding of small matrices: `npm run build && node dist/bench/bind.js [--calls 10000] [--json PATH]`. Microseconds of CPU for each call
 * of `fn.bind` on the cpu device, in batches of 250 after 4,000 calls: the fastest batch, and the median.
 */
import { coords, dense, devices, load } from '../src/node.ts'
import { count, cpu, median, packageFile, table, writeJson } from './support.ts'

const BATCH = 250

const device = await devices.cpu()
const kernel = (await load(packageFile('kernels/spmm.spt'))).kernel('spmm')
const A = coords(
  [3, 4],
  [Int32Array.of(0, 0, 1, 2, 2), Int32Array.of(0, 3, 1, 0, 2)],
  new Float32Array(5).fill(1),
)
const B = dense([4, 2], new Float32Array(8).fill(1))

const figures: (readonly [schedule: string, fastest: number, median: number])[] = []
for (const [name, ...args] of [['cpu'], ['hyb', 2, 3]] as const) {
  const fn = await kernel.schedule(name, ...args).build(device)
  const bind = async (times: number): Promise<void> => {
    for (let k = 0; k < times; k++) (await fn.bind({ A, B })).free()
  }
  await bind(4000)
  const times: number[] = []
  for (let k = 0; k < count('calls', 10_000); k += BATCH) {
    const start = cpu()
    await bind(BATCH)
    times.push((1000 * (cpu() - start)) / BATCH)
  }
  figures.push([`${name}(${args.join(', ')})`, Math.min(...times), median(times)])
}
console.log(table(['schedule', 'fastest µs', 'median µs'], figures))
writeJson(figures)
