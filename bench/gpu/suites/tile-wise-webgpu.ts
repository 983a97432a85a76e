/** Layers in tiles on WebGPU, in f32, against our dense product there. */
import { dense } from '../../../src/node.ts'
import { tileWise } from '../../../src/prune.ts'
import { type Candidate, fieldOf } from '../candidates.ts'
import { type Contestant, compete } from '../case.ts'
import { checkProduct, ours, withTypes } from '../contestants.ts'
import { inputs } from '../declared.ts'
import { ExpectedProduct } from '../expected.ts'
import { Formats } from '../formats.ts'
import { keptOf, OurLayer } from '../layer-contestants.ts'
import type { OurDevice } from '../ours.ts'
import {
  Activations,
  GRANULARITY,
  Layer,
  layerSizes,
  layersAsked,
  percent,
  sizeName,
} from '../pruned-layers.ts'
import type { Session } from '../session.ts'
import { full } from './gemm.ts'

const SUITE = 'tile-wise-webgpu'

export async function tileWiseOnWebgpu(s: Session): Promise<void> {
  const on = await s.webgpu()
  s.say(`WebGPU: ${on.device.name}`)
  const field = fieldOf(SUITE, s.options.schedules)
  for (const size of layerSizes(s.options.matrices, s.options.quick)) {
    const layer = new Layer(size, Date.now() & 0xffff)
    const X = new Activations(size, (Date.now() + 1) & 0xffff)
    for (const sparsity of layersAsked(s.options).sparsities) {
      if (s.late()) return
      if (s.has(SUITE, sizeName(size), percent(sparsity))) continue
      const kept = await keptOf(s, layer, tileWise({ granularity: GRANULARITY }), sparsity)
      if (!kept) continue
      const own = new OurLayer(layer, X, kept)
      const formats = new Formats()
      try {
        const entries = await compete(
          [
            ...fieldOf('tile-wise-webgpu-dense', s.options.schedules).candidates.map((c) =>
              denseProduct(on, c, layer, X),
            ),
            ...field.candidates.map((c) => own.contestant(on, c, formats)),
          ],
          field.standard,
          s,
        )
        await s.done({
          suite: SUITE,
          data: sizeName(size),
          at: percent(sparsity),
          entries,
          checked: own.checked,
          floor: null,
          flops: 2 * kept.bits.length * size.columns,
          standard: field.standard,
        })
      } finally {
        await formats.free()
      }
    }
  }
}

/** All weights, in our dense kernel: in a peer's place. */
function denseProduct(on: OurDevice, c: Candidate, layer: Layer, X: Activations): Contestant {
  const { outputs: n, inputs: k, columns: m } = layer.size
  const bind = async () => {
    const ready = await on.ready(c)
    const [, b] = inputs(ready.source)
    if (!b) throw new Error(`${ready.source.name} has too few inputs`)
    // Scalar factors are one.
    const scalars = ready.source.params.filter((p) => p.kind === 'scalar').map((p) => [p.name, 1] as const)
    return on.prepare(
      ready,
      { parts: null, milliseconds: 0, bytes: 0 },
      dense([n, k], layer.values, 'f32'),
      { [b.name]: dense([k, m], X.values.subarray(0, k * m), 'f32') },
      Object.fromEntries(scalars),
    )
  }
  const expected = new ExpectedProduct(full(n, k, layer.values), X.values, m)
  return { ...ours(`dense ${c.text}`, bind, (run) => checkProduct(run, expected), withTypes), side: 'peer' }
}
