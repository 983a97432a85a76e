/** The smallest product, replayed from a graph, one run after the other: what launching and the tail cost. */
import { fieldOf, widthValues } from '../candidates.ts'
import { best, compete } from '../case.ts'
import { floor } from '../ceilings.ts'
import { ExpectedProduct } from '../expected.ts'
import { normals } from '../random.ts'
import type { Session } from '../session.ts'
import { three } from '../statistics.ts'
import { cusparseProducts, Formats, leastProduct, ourProduct } from './products.ts'

const WIDTH = 32

export async function coraGraph(s: Session): Promise<void> {
  if (s.has('cora-graph', 'cora', `N = ${WIDTH}`)) return
  const source = s.sources().find((x) => x.name === 'cora')
  if (!source) {
    s.say('cora is not among the data')
    return
  }
  const A = await source.read()
  const [ours, stream, library] = [await s.cuda(), await s.stream(), await s.cusparse()]
  const field = fieldOf('cora-graph', s.options.schedules, widthValues(WIDTH))
  const B = normals(A.columns * WIDTH)
  const expected = new ExpectedProduct(A, B, WIDTH)
  const formats = new Formats()
  const there = library.upload(A)
  const [b, c] = [stream.upload(B), stream.alloc(4 * A.rows * WIDTH)]
  try {
    const entries = await compete(
      [
        ...(await cusparseProducts(s, there, b, c, WIDTH, expected)),
        ...field.candidates.map((x) => ourProduct(ours, x, formats, A, B, WIDTH, expected)),
      ],
      field.standard,
      s,
    )
    const least = leastProduct(A, WIDTH)
    const result = {
      suite: 'cora-graph',
      data: A.name,
      at: `N = ${WIDTH}`,
      entries,
      checked: expected.checked,
      floor: s.ceilings ? floor(s.ceilings, least, 'f32') : null,
      flops: least.flops,
      standard: field.standard,
    }
    await s.done(result)
    const [mine, peer] = [best(result, 'ours'), best(result, 'peer')]
    const us = (x: number | null | undefined): string =>
      x === null || x === undefined ? '-' : `${three(x)} µs`
    s.say(
      `from a graph, back to back: ours ${us(mine?.times.backToBack)}, cuSPARSE ${us(peer?.times.backToBack)}; between two events: ${us(mine?.times.event)}, ${us(peer?.times.event)}`,
    )
  } finally {
    stream.free(b, c)
    library.release(there)
    await formats.free()
  }
}
