/**
 * Binding of small matrices: `npm run build && node dist/bench/bind.js [--calls 10000] [--graphs 200] [--json PATH]`. Microseconds of CPU
 * on the cpu device. One matrix: for each call of `fn.bind`, in batches of 250 after 4,000 calls, the fastest batch and the median.
 * Graphs of different structure with 10 to 60 nodes, through one compiled kernel: for each graph, the fastest of 50 sweeps over all
 * graphs; of these, the fastest and the median.
 */
import { coords, dense, devices, load } from '../src/node.ts'
import { Random } from '../src/run/bind/sources/random-tensors.ts'
import { count, cpu, median, packageFile, table, writeJson } from './support.ts'

const BATCH = 250
const SWEEPS = 50
const WIDTH = 8

const device = await devices.cpu()
const kernel = (await load(packageFile('kernels/spmm.spt'))).kernel('spmm')
const A = coords(
  [3, 4],
  [Int32Array.of(0, 0, 1, 2, 2), Int32Array.of(0, 3, 1, 0, 2)],
  new Float32Array(5).fill(1),
)
const B = dense([4, 2], new Float32Array(8).fill(1))

const figures: (readonly [what: string, fastest: number, median: number])[] = []
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
  figures.push([`bind ${name}(${args.join(', ')})`, Math.min(...times), median(times)])
}

const random = new Random(51)
const graphs = Array.from({ length: count('graphs', 200) }, () => {
  const n = 10 + random.below(51)
  const edges = Array.from({ length: n * n }, (_, k) => k).filter(() => random.below(n) < 4)
  const [i, j] = [edges.map((k) => Math.floor(k / n)), edges.map((k) => k % n)]
  return {
    A: coords([n, n], [Int32Array.from(i), Int32Array.from(j)], new Float32Array(edges.length).fill(1)),
    B: dense([n, WIDTH], new Float32Array(n * WIDTH).fill(1)),
    values: new Float32Array(edges.length).fill(2),
  }
})
const fn = await kernel.schedule('cpu').build(device)
const bindings = await Promise.all(graphs.map((g) => fn.bind({ A: g.A, B: g.B })))
const calls: Record<string, (g: (typeof graphs)[number], k: number) => Promise<unknown>> = {
  'fn({ A, B })': (g) => fn({ A: g.A, B: g.B }),
  'bind, free': async (g) => (await fn.bind({ A: g.A, B: g.B })).free(),
  "set('A', values)": (g, k) => bindings[k]!.set('A', g.values),
  "set('A', coords)": (g, k) => bindings[k]!.set('A', g.A),
  run: (_, k) => bindings[k]!.run(),
  "get('C')": (_, k) => bindings[k]!.get('C'),
}
for (const [name, call] of Object.entries(calls)) {
  const fastest = graphs.map(() => Number.POSITIVE_INFINITY)
  for (let sweep = 0; sweep < SWEEPS; sweep++)
    for (const [k, graph] of graphs.entries()) {
      const start = cpu()
      await call(graph, k)
      fastest[k] = Math.min(fastest[k]!, 1000 * (cpu() - start))
    }
  figures.push([`${graphs.length} graphs, ${name}`, Math.min(...fastest), median(fastest)])
}
console.log(table(['call', 'fastest µs', 'median µs'], figures))
writeJson(figures)
