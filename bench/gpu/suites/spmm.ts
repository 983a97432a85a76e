/** Sparse × dense, f32, against cuSPARSE's best algorithm for each case. */
import { fieldOf, widthValues } from '../candidates.ts'
import { compete } from '../case.ts'
import { floor } from '../ceilings.ts'
import { ExpectedProduct } from '../expected.ts'
import { type Csr, nonzeros, rowLengths } from '../matrix.ts'
import { normals } from '../random.ts'
import type { Session } from '../session.ts'
import { cusparseProducts, Formats, leastProduct, ourProduct } from './products.ts'

export async function spmm(s: Session): Promise<void> {
  for (const source of s.sources()) {
    if (s.late()) return
    const A = await source.read()
    s.say(describe(A))
    await matrix(s, A)
  }
}

export function describe(A: Csr): string {
  const { longest, mean, empty } = rowLengths(A)
  return `${A.name}: ${A.rows} × ${A.columns}, ${nonzeros(A)} nonzeros, rows of ${mean.toFixed(1)} on average, longest ${longest}, ${empty} empty`
}

async function matrix(s: Session, A: Csr): Promise<void> {
  const [ours, stream, library] = [await s.cuda(), await s.stream(), await s.cusparse()]
  const formats = new Formats()
  const there = library.upload(A)
  try {
    for (const width of s.options.widths) {
      if (s.late()) return
      if (s.has('spmm', A.name, `N = ${width}`)) continue
      const field = fieldOf('spmm', s.options.schedules, widthValues(width))
      const B = normals(A.columns * width)
      const expected = new ExpectedProduct(A, B, width)
      const [b, c] = [stream.upload(B), stream.alloc(4 * A.rows * width)]
      const entries = await compete(
        [
          ...(await cusparseProducts(s, there, b, c, width, expected)),
          ...field.candidates.map((x) => ourProduct(ours, x, formats, A, B, width, expected)),
        ],
        field.standard,
        s,
      )
      stream.free(b, c)
      const least = leastProduct(A, width)
      await s.done({
        suite: 'spmm',
        data: A.name,
        at: `N = ${width}`,
        entries,
        checked: expected.checked,
        floor: s.ceilings ? floor(s.ceilings, least, 'f32') : null,
        flops: least.flops,
        standard: field.standard,
      })
    }
  } finally {
    library.release(there)
    await formats.free()
  }
}
