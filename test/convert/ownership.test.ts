/** Columns of values that a conversion allocates are its own to release; those of the tensor are not. */
import { expect, test } from 'vitest'
import { ready, runSync } from '../../src/ast/work.ts'
import type { Engine } from '../../src/columns/column-engine.ts'
import { provedOf } from '../../src/formats/proof/prove.ts'
import type { TypedArray } from '../../src/ir/values/arrays.ts'
import { convert, loadEntries, type Source } from '../../src/storage/convert.ts'
import { HOST } from '../../src/storage/engines/host/engine.ts'
import { givenFor, matrix, written } from '../formats/user-formats.ts'
import { standard } from '../support/packaged-formats.ts'

const A = matrix(
  [3, 4],
  [
    [0, 1, 5],
    [2, 0, 7],
    [2, 3, 9],
  ],
)
const given = givenFor(A.shape)
const options = { given, fill: 0, sets: new Map() }
const dims = [
  { name: 'row', extent: 3 },
  { name: 'col', extent: 4 },
]
/** As on devices, the sums of distinct entries are the values themselves. */
const SHARING: Engine<TypedArray> = {
  ...HOST,
  sumsOfEqual: (_, sums, _dtype, _dims, distinct) => ready({ sums, distinct }),
}

const CUT = written(`${standard('csr')}format cut over (i, j) { part csr where (i < 1) part csr }`)
const proved = CUT.parts.map((p) => provedOf(p.instance, CUT.over))
const parts = runSync(convert(HOST, A, CUT, { ...options, proved }))
const stored = (own: typeof parts): Source<TypedArray> => ({
  ...A,
  kind: 'parts',
  parts: own,
  fill: 0,
  given,
})

test.each([
  ['coordinates', A, false],
  ['one part', stored(parts.slice(0, 1)), false],
  ['several parts', stored(parts), true],
] as const)('%s', (_, source, concatenates) => {
  const load = (engine: Engine<TypedArray>, readsValues: boolean) => {
    const { context, allocated } = runSync(loadEntries(engine, source, dims, readsValues, options))
    return [allocated, context] as const
  }
  for (const [allocated, context] of [load(HOST, false), load(SHARING, true)]) {
    expect(context.values).toBe(context.stored)
    expect(allocated).toEqual(concatenates ? [context.stored] : [])
  }
  const [allocated, context] = load(HOST, true)
  expect(context.values).not.toBe(context.stored)
  expect(allocated).toEqual([...(concatenates ? [context.stored] : []), context.values])
})
