/** A training step of GraphSAGE: the loss and the gradients of all weights, from a random tenth of the nodes. */
import { coords, dense, load } from '../../src/node.ts'
import type { Device } from '../../src/runtime/device.ts'
import { packageFile } from '../support.ts'
import type { Matrix } from '../verify-all/data.ts'
import { type Step, uniform } from './index.ts'

/** Features, hidden features and classes, as of the Planetoid data sets. */
const SIZES: Readonly<Record<string, readonly [number, number, number]>> = {
  cora: [1433, 64, 7],
  citeseer: [3703, 64, 6],
  pubmed: [500, 64, 3],
}
const OUTPUTS = ['loss', 'd_W1', 'd_N1', 'd_b1', 'd_W2', 'd_N2', 'd_b2'] as const

export async function graphSage(device: Device, set: Matrix): Promise<Step | null> {
  const widths = SIZES[set.name]
  if (!widths) return null
  const [d, h, c] = widths
  const n = set.tensor.shape[0]!
  const [rows, columns] = set.tensor.coords as [Int32Array, Int32Array]
  const degrees = new Int32Array(n)
  for (const i of rows) degrees[i]!++
  const T = new Float32Array(n * c)
  for (let i = 0; i < n; i += 10) T[i * c + ((i * 7919) % c)] = 1
  const arrays = {
    rows,
    columns,
    X: uniform(n * d, 1, 1),
    T,
    W1: uniform(d * h, d ** -0.5, 2),
    N1: uniform(d * h, d ** -0.5, 3),
    b1: uniform(h, 0.1, 4),
    W2: uniform(h * c, h ** -0.5, 5),
    N2: uniform(h * c, h ** -0.5, 6),
    b2: uniform(c, 0.1, 7),
  }
  const shapes = { X: [n, d], T: [n, c], W1: [d, h], N1: [d, h], b1: [h], W2: [h, c], N2: [h, c], b2: [c] }
  const weights = Float32Array.from(rows, (i) => 1 / degrees[i]!)
  const inputs = {
    A: coords([n, n], [rows, columns], weights),
    ...Object.fromEntries(
      Object.entries(shapes).map(([name, shape]) => [
        name,
        dense(shape, arrays[name as keyof typeof shapes]),
      ]),
    ),
  }
  const kernel = (await load(packageFile('bench/models/graph-sage.spt'))).kernel('backward')
  const built = await kernel.build(device)
  const bound = await built.bind(inputs)
  return {
    schedule: bound.selection?.text ?? 'auto-scheduler',
    sizes: { n, d, h, c },
    arrays,
    commands: () => bound.executable.commands,
    async results() {
      await bound.run()
      const found = await Promise.all(
        OUTPUTS.map(async (name) => [name, Float32Array.from((await bound.get(name)).values!)] as const),
      )
      return Object.fromEntries(found)
    },
    free: () => {
      bound.free()
      built.release()
    },
  }
}
