/** Softmax of the rows of sparse matrices, in f32, against PyTorch. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { entryOf, type PythonResult, pythonPeers } from '../../peers/python.ts'
import { fieldOf } from '../candidates.ts'
import { compete } from '../case.ts'
import { floor } from '../ceilings.ts'
import { bindRows, elementsOf, ours } from '../contestants.ts'
import { Tally, type Verdict, WORK } from '../expected.ts'
import { Formats } from '../formats.ts'
import { type Csr, describe, nonzeros } from '../matrix.ts'
import { choose } from '../random.ts'
import type { Session } from '../session.ts'

const SUITE = 'softmax'
const AT = 'rows'

export async function softmax(s: Session): Promise<void> {
  const matrices: Csr[] = []
  for await (const A of s.matrices()) if (!s.has(SUITE, A.name, AT)) matrices.push(A)
  const python = await peers(s, matrices)
  for (const A of matrices) {
    if (s.late()) return
    s.say(describe(A))
    await one(s, A, python)
  }
}

/** All matrices in one process: it takes seconds to start. */
const peers = (s: Session, matrices: readonly Csr[]): Promise<readonly PythonResult[]> =>
  pythonPeers('row_softmax.py', s, (folder) =>
    matrices.map(({ name, rows, columns, indptr, indices, values }) => {
      const file = join(folder, name)
      writeFileSync(`${file}-indptr`, indptr)
      writeFileSync(`${file}-indices`, indices)
      writeFileSync(`${file}-values`, values)
      return { id: name, file, rows, columns }
    }),
  )

async function one(s: Session, A: Csr, python: readonly PythonResult[]): Promise<void> {
  const field = fieldOf(SUITE, s.options.schedules)
  const device = await s.cuda()
  const expected = new ExpectedSoftmax(A)
  const formats = new Formats()
  try {
    const entries = await compete(
      field.candidates.map((c) =>
        ours(
          c.text,
          () => bindRows(device, c, formats, A, []),
          async (run) => expected.check(await elementsOf(run, device, formats, A)),
        ),
      ),
      field.standard,
      s,
    )
    const count = nonzeros(A)
    // A maximum, a difference, an exponential, a sum and a quotient; the matrix and the result once.
    const least = { flops: 5 * count, bytes: 8 * count + 4 * (A.rows + 1) }
    await s.done({
      suite: SUITE,
      data: A.name,
      at: AT,
      entries: [...entries, ...python.filter((r) => r.id === A.name).map(entryOf)],
      checked: expected.checked,
      floor: s.ceilings ? floor(s.ceilings, least, 'f32') : null,
      flops: least.flops,
      standard: field.standard,
    })
  } finally {
    await formats.free()
  }
}

/** Some rows element by element, in float64; of all rows, that elements add up to one. */
export class ExpectedSoftmax {
  readonly #A: Csr
  readonly #rows: readonly number[]

  constructor(A: Csr) {
    this.#A = A
    const length = (r: number): number => A.indptr[r + 1]! - A.indptr[r]!
    let longest = 0
    for (let r = 1; r < A.rows; r++) if (length(r) > length(longest)) longest = r
    const rows = new Set<number>()
    let work = 0
    for (const r of [longest, 0, A.rows - 1, ...choose(Math.min(A.rows, 65_536), A.rows, 31)]) {
      work += length(r)
      if (work > WORK / 10 && rows.size > 0) break
      rows.add(r)
    }
    this.#rows = [...rows]
  }

  get checked(): string {
    return `${this.#rows.length} rows by element, all ${this.#A.rows} by their sums`
  }

  check(P: ArrayLike<number>): Verdict {
    const { indptr, values, rows } = this.#A
    const tally = new Tally()
    const unit = 2 ** -24
    for (const r of this.#rows) {
      const [from, to] = [indptr[r]!, indptr[r + 1]!]
      let largest = -Infinity
      for (let e = from; e < to; e++) largest = Math.max(largest, values[e]!)
      let total = 0
      for (let e = from; e < to; e++) total += Math.exp(values[e]! - largest)
      for (let e = from; e < to; e++) {
        const off = values[e]! - largest
        const want = Math.exp(off) / total
        const bound = unit * (16 + 2 * Math.abs(off) + 2 * Math.sqrt(to - from))
        tally.add(() => `element ${e} of row ${r}`, P[e]!, want, want, bound * want + 1e-37)
      }
    }
    for (let r = 0; r < rows; r++) {
      const [from, to] = [indptr[r]!, indptr[r + 1]!]
      if (from === to) continue
      let sum = 0
      for (let e = from; e < to; e++) sum += P[e]!
      tally.add(() => `the sum of row ${r}`, sum, 1, 1, unit * (64 + 4 * Math.sqrt(to - from)))
    }
    return tally.verdict
  }
}
