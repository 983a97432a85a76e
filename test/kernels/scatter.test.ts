/** Kernels that write where data say: kernel maps, transposed products, lists of rows, edges, conversion. */
import { coords } from '../../src/node.ts'
import { integers, type KernelCase, kernelSuite, matrix, type Pattern, patterns } from '../support/kernels.ts'
import { below, ragged, tensors, withIntegers } from './data.ts'

function kernelMap(
  name: string,
  lengths: readonly number[],
  voxels: number,
  into: number,
  c: number,
  o: number,
): KernelCase {
  const lists = ragged(lengths)
  const n = lists[0].length
  const pairs = Math.max(0, ...lengths)
  const list = (bound: number, seed: number) => coords([lengths.length, pairs], lists, below(bound, n, seed))
  return {
    name,
    inputs: {
      tensors: {
        imap: list(voxels, 1),
        omap: list(into, 2),
        X: integers(voxels * c, 3),
        W: integers(lengths.length * c * o, 4),
      },
      params: { voxels, out_voxels: into, channels: c, out_channels: o },
    },
    exact: true,
  }
}

const kernelMaps = (): KernelCase[] => [
  kernelMap('no offset', [], 3, 4, 2, 2),
  kernelMap('no pair', [0, 0], 3, 4, 2, 2),
  kernelMap('no voxel', [0], 0, 0, 2, 2),
  kernelMap('no channel', [2, 3], 3, 4, 0, 2),
  kernelMap('one pair', [1], 1, 1, 1, 1),
  kernelMap('empty lists', [0, 5, 0, 0, 9, 0], 12, 7, 5, 33),
  kernelMap('collisions', [40, 3, 17], 30, 2, 3, 8),
  kernelMap('odd sizes', [9, 70, 31], 50, 41, 17, 40),
]

/** Offset, output voxel, input voxel; also with more than one of these to an output voxel. */
const kernelTrees = (): KernelCase[] =>
  tensors().map((p, k): KernelCase => {
    const [offsets, , voxels] = p.shape as [number, number, number]
    const [c, o] = [
      [5, 33],
      [0, 3],
      [4, 8],
    ][k % 3] as [number, number]
    return {
      name: `${p.name}, ${c} → ${o}`,
      inputs: {
        tensors: { A: withIntegers(p, 2), X: integers(voxels * c, 3), W: integers(offsets * c * o, 4) },
        params: { channels: c, out_channels: o },
      },
      exact: true,
    }
  })

kernelSuite({
  file: 'kernels/convolution.spt',
  cases: (kernel) => (kernel === 'convolution' ? kernelMaps() : kernelTrees()),
})

kernelSuite({
  file: 'kernels/spmm-transposed.spt',
  cases: () =>
    patterns().map((p, k): KernelCase => {
      const d = [1, 33, 0, 7][k % 4]!
      return {
        name: `${p.name}, d = ${d}`,
        inputs: {
          tensors: { A: matrix(p, integers(p.rows.length, 2)), X: integers(p.m * d, 3) },
          params: { d },
        },
        exact: true,
      }
    }),
})

kernelSuite({
  file: 'kernels/frontier.spt',
  cases: () =>
    patterns().flatMap((p, k): KernelCase[] => {
      const d = [1, 33, 0, 7][k % 4]!
      const counts = p.m === 0 ? [0] : [0, 1, 11]
      return counts.map((count) => ({
        name: `${p.name}, ${count} listed, d = ${d}`,
        inputs: {
          tensors: {
            A: matrix(p, integers(p.rows.length, 2)),
            X: integers(p.m * d, 3),
            active: below(p.m, count, 4),
          },
          params: { d, count },
        },
        exact: true,
      }))
    }),
})

kernelSuite({
  file: 'kernels/edge-parallel.spt',
  cases: (kernel) =>
    patterns().map((p, k): KernelCase => {
      const d = [1, 33, 0, 16][k % 4]!
      const A = matrix(p, integers(p.rows.length, 2))
      const tensors =
        kernel === 'gather_scatter'
          ? { A, B: integers(p.n * d, 3) }
          : { j: matrix(p, null), Q: integers(p.m * d, 3), K: integers(p.n * d, 4) }
      return { name: `${p.name}, d = ${d}`, inputs: { tensors, params: { d } }, exact: true }
    }),
})

/** The blocks that hold something, and every second one that does not. */
function blocksOf(p: Pattern, b: number) {
  const across = Math.ceil(p.n / b)
  const held = new Set<number>()
  for (let e = 0; e < p.rows.length; e++)
    held.add(Math.floor(p.rows[e]! / b) * across + Math.floor(p.cols[e]! / b))
  for (let k = 0; k < Math.ceil(p.m / b) * across; k += 2) held.add(k)
  const list = [...held].sort((x, y) => x - y)
  return coords(
    [Math.ceil(p.m / b), across],
    [list.map((k) => Math.floor(k / across)), list.map((k) => k % across)],
  )
}

kernelSuite({
  file: 'kernels/csr-to-bsr.spt',
  cases: () =>
    patterns().flatMap((p) =>
      [1, 4, 16].map(
        (b): KernelCase => ({
          name: `${p.name}, b = ${b}`,
          inputs: {
            tensors: { A: matrix(p, integers(p.rows.length, 2)), jo: blocksOf(p, b) },
            params: { b },
          },
          exact: true,
        }),
      ),
    ),
})
