/** Inference of RGCN: two layers of 32 features, sums over neighbours by relation and a product for the node itself. */
import { coords, dense, load } from '../../src/node.ts'
import type { Device } from '../../src/runtime/device.ts'
import { packageFile } from '../support.ts'
import type { Triples } from '../verify-all/data.ts'
import { type Step, uniform } from './index.ts'

const D = 32

export async function rgcn(device: Device, set: Triples): Promise<Step> {
  const [relations, n] = set.tensor.shape as [number, number]
  const [rel, dst, src] = set.tensor.coords as [Int32Array, Int32Array, Int32Array]
  const key = (e: number): number => rel[e]! * n + dst[e]!
  const degrees = new Map<number, number>()
  for (let e = 0; e < rel.length; e++) degrees.set(key(e), (degrees.get(key(e)) ?? 0) + 1)
  const weights = Float32Array.from(rel, (_, e) => 1 / degrees.get(key(e))!)
  const arrays = {
    rel,
    dst,
    src,
    X: uniform(n * D, 1, 1),
    W1: uniform(relations * D * D, D ** -0.5, 2),
    R1: uniform(D * D, D ** -0.5, 3),
    W2: uniform(relations * D * D, D ** -0.5, 4),
    R2: uniform(D * D, D ** -0.5, 5),
  }
  const A = coords([relations, n, n], [rel, dst, src], weights)
  const sums = (await load('sparsetile/kernels/gather-gemm-scatter.spt')).kernel('gather_gemm_scatter<f32>')
  const whole = (await load(packageFile('bench/models/rgcn.spt'))).kernel('combine')
  const sum = await sums.schedule('auto').build(device)
  const combine = await whole.build(device)
  const X = dense([n, D], arrays.X)
  const layer = async (k: 1 | 2, X: Parameters<typeof sum.bind>[0][string]) => {
    const s = await sum.bind({ A, X, W: dense([relations, D, D], arrays[`W${k}`]) })
    const y = await combine.bind({
      S: s.output('Y'),
      X,
      R: dense([D, D], arrays[`R${k}`]),
      low: k === 1 ? 0 : -Infinity,
    })
    return [s, y] as const
  }
  const first = await layer(1, X)
  const second = await layer(2, first[1].output('Y'))
  const all = [...first, ...second]
  return {
    schedule: first[0].selection?.text ?? 'auto-scheduler',
    sizes: { n, relations, d: D },
    arrays,
    commands: () => all.flatMap((b) => b.executable.commands),
    async results() {
      for (const b of all) await b.run()
      return { Y: Float32Array.from((await second[1].get('Y')).values!) }
    },
    free: () => {
      for (const b of all) b.free()
      for (const b of [sum, combine]) b.release()
    },
  }
}
