/**
 * Functions of bits in maps, inverses, keys, conditions and queries, around lists and beneath arithmetic that 32 bits may not hold:
 * what leaves them is refused, by the host and by devices; everything else is what whole numbers give.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { conversionPlan, uploadResident } from '../../src/storage/engines/device/index.ts'
import { convertTensor, partsToCoords } from '../../src/storage/entries/stored-parts.ts'
import type { FormatOperands } from '../../src/storage/format-operands.ts'
import type { CoordTensor } from '../../src/storage/tensor.ts'
import { givenFor, matrix, written } from '../formats/user-formats.ts'
import { runs } from '../support/cases.ts'
import { arraysOf } from '../support/packaged-schedules.ts'
import { diagnosticOf } from '../support/refusal.ts'
import { remapParts } from '../support/remap-parts.ts'
import { DEVICES, opened } from './devices.ts'

/** What an expression of `x` has where `x` is a number; nothing where 32 bits do not hold what it computes on the way. */
interface Term {
  readonly text: string
  readonly of: (x: number, z: Int32Array) => number | undefined
  /** The same in numbers that are larger. */
  readonly exact: (x: number, z: Int32Array) => number
}

const whole = (v: number | undefined): number | undefined =>
  v !== undefined && v >= -(2 ** 31) && v < 2 ** 31 ? v + 0 : undefined

const both = (
  text: (a: string, b: string) => string,
  f: (a: number, b: number) => number,
): ((a: Term, b: Term) => Term) => {
  const of = (x: number | undefined, y: number | undefined) =>
    x === undefined || y === undefined ? undefined : whole(f(x, y))
  return (a, b) => ({
    text: text(a.text, b.text),
    of: (x, z) => of(a.of(x, z), b.of(x, z)),
    exact: (x, z) => f(a.exact(x, z), b.exact(x, z)) + 0,
  })
}

const literal = (n: number): Term => ({
  text: n < 0 ? `(${n})` : `${n}`,
  of: () => n,
  exact: () => n,
})
const x: Term = { text: 'x', of: (v) => v, exact: (v) => v }
const popcount = (v: number): number => [...(v >>> 0).toString(2)].filter((c) => c === '1').length
const mod = (a: number, b: number): number => (b === 0 ? 0 : a - b * Math.floor(a / b))

const WORDS = [
  both(
    (a, b) => `bit_and(${a}, ${b})`,
    (a, b) => a & b,
  ),
  both(
    (a, b) => `bit_or(${a}, ${b})`,
    (a, b) => a | b,
  ),
  both(
    (a, b) => `bit_xor(${a}, ${b})`,
    (a, b) => a ^ b,
  ),
  both(
    (a, b) => `shift_left(${a}, ${b})`,
    (a, b) => a << b,
  ),
  both(
    (a, b) => `shift_right(${a}, ${b})`,
    (a, b) => (a >>> b) | 0,
  ),
  both(
    (a) => `popcount(${a})`,
    (a) => popcount(a),
  ),
]
const ARITHMETIC = [
  both(
    (a, b) => `(${a} + ${b})`,
    (a, b) => a + b,
  ),
  both(
    (a, b) => `(${a} - ${b})`,
    (a, b) => a - b,
  ),
  both(
    (a, b) => `(${a} * ${b})`,
    (a, b) => a * b,
  ),
  both(
    (a, b) => `max(${a}, ${b})`,
    (a, b) => Math.max(a, b),
  ),
]

const { term } = fc.letrec<{ term: Term }>((tie) => ({
  term: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    fc.constant(x),
    fc.constantFrom(-1, 0, 1, 2, 7, 30, 31, 33, 65536, 2 ** 31 - 1).map(literal),
    fc.tuple(fc.constantFrom(...WORDS), tie('term'), tie('term')).map(([f, a, b]) => f(a, b)),
    fc
      .tuple(fc.constantFrom(...WORDS), tie('term'), fc.constantFrom(1, 2, 29))
      .map(([f, a, n]) => f(a, literal(n))),
    fc.tuple(fc.constantFrom(...ARITHMETIC), tie('term'), tie('term')).map(([f, a, b]) => f(a, b)),
    tie('term').map(
      (a): Term => ({
        text: `z[(${a.text}) % 3]`,
        of: (v, z) => {
          const at = a.of(v, z)
          return at === undefined ? undefined : z[mod(at, 3)]
        },
        exact: (v, z) => z[mod(a.exact(v, z), 3)]!,
      }),
    ),
  ),
}))

/** Among these many that 32 bits do not hold. */
const large = fc.oneof(
  term,
  term.map((a) => ARITHMETIC[2]!(a, literal(2 ** 31 - 1))),
)

const at = ({ text }: Term, name: string): string => text.replace(/\bx\b/g, name)

type Site = 'map' | 'inverse' | 'key' | 'where' | 'query'

/** The same expression in different places. An inverse multiplies and divides it again. */
function formatOf(site: Site, e: Term): string {
  const of = (name: string): string => `(${at(e, name)})`
  const rows = 'axis io = dense_fixed(i)\n  axis jo = sparse_variable(io, j)'
  const turned = (to: string, from: string): string => `  ${rows}
  map (i, j) -> (i, (j + ${to} % size(j)) % size(j))
  inverse (io, jo) -> (io, (jo + size(j) - ${from} % size(j)) % size(j))`
  const head = 'format f(z: list) over (i, j) {'
  switch (site) {
    case 'map':
      return `${head}\n${turned(of('i'), of('io'))}\n}`
    case 'inverse':
      return `${head}\n${turned(of('i'), `(${of('io')} * 4096 / 4096)`)}\n}`
    case 'key':
      return `${head}
  sort i by ${of('i')} -> (place, row)
  ${rows}
  map (i, j) -> (place[i], j)
  inverse (io, jo) -> (row[io], jo)
}`
    case 'where':
      return `format rows() over (i, j) {
  ${rows}
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
${head}
  part one = rows where (${of('i')} > 5)
  part two = rows
}`
    case 'query':
      return `${head}
  axis g = dense_fixed(i)
  axis io = sparse_variable(g, i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (rank(${of('i')} by j), i, j)
  inverse (g, io, jo) -> (io, jo)
}`
  }
}

const tensors: fc.Arbitrary<CoordTensor> = fc
  .tuple(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 5 }))
  .chain(([m, n]) =>
    fc.uniqueArray(fc.nat(m * n - 1), { maxLength: 9 }).map((ps) =>
      matrix(
        [m, n],
        ps.map((p, k) => [Math.floor(p / n), p % n, k + 1]),
      ),
    ),
  )
  .map((t) => ({ ...t, values: Float32Array.from(t.values!), dtype: 'f32' }))

const lists = fc.constantFrom([0, 1, 2, 3], [0, 5, 9, 1000], [0, 40000, 939066879, 2 ** 31 - 1])
const sites = fc.constantFrom<Site>('map', 'inverse', 'key', 'where', 'query')
const givenTo = (tensor: CoordTensor, z: readonly number[]): FormatOperands =>
  givenFor(tensor.shape, { lists: new Map([['z', Int32Array.from(z)]]) })

/** Where each entry goes: its coordinate on each axis. */
function placesOf(site: Site, tensor: CoordTensor, values: readonly number[]): number[][] {
  const [is, js] = tensor.coords.map((c) => Array.from(c)) as [number[], number[]]
  const n = tensor.shape[1]!
  const of = (i: number): number => values[i]!
  switch (site) {
    case 'key': {
      const rows = values.map((_, i) => i).sort((a, b) => of(a) - of(b) || a - b)
      return is.map((i, e) => [rows.indexOf(i), js[e]!])
    }
    case 'query':
      return is.map((i, e) => {
        const below = is.filter((k, d) => js[d] === js[e] && of(k) < of(i)).map(of)
        return [new Set(below).size, i, js[e]!]
      })
    case 'where':
      return is.map((i, e) => [i, js[e]!])
    default:
      return is.map((i, e) => [i, mod(js[e]! + mod(of(i), n), n)])
  }
}

/** Whether it does not depend on its coordinate, computed exactly. */
const isSame = (e: Term, z: Int32Array): boolean =>
  new Set([0, 1, 2, 3, 4, 5].map((v) => e.exact(v, z))).size === 1

/** A tensor's elements, in order. */
const elements = ({ coords, values }: CoordTensor): string[] =>
  Array.from(values!, (v, e) => `${coords.map((c) => c[e]).join()}: ${v}`).sort()

describe('on the host', () => {
  // Nothing is there, whatever 32 bits hold of what its inverse would make of it.
  test('conversion to padded rows round-trips', () => {
    fc.assert(
      fc.property(tensors, lists, term, (tensor, z, e) => {
        const text = formatOf('inverse', e).replace('sparse_variable(io, j)', 'sparse_fixed(io, j, 5)')
        let made: ReturnType<typeof convertTensor> | null = null
        const refused = diagnosticOf(() => {
          made = convertTensor(tensor, written(text, 'z'), givenTo(tensor, z))
        })
        if (refused) expect(['format/map-overflow', 'check/literal-range']).toContain(refused.code)
        else expect(elements(partsToCoords(made!))).toEqual(elements(tensor))
      }),
      { numRuns: runs(75) },
    )
  })

  test('values beyond 32 bits are rejected, and others are exact', () => {
    let [refusals, accepted] = [0, 0]
    fc.assert(
      fc.property(tensors, lists, sites, large, (tensor, z, site, e) => {
        const list = Int32Array.from(z)
        const rows = Array.from({ length: tensor.shape[0]! }, (_, i) => e.of(i, list))
        const times = site === 'inverse' ? 4096 : 1
        const asked = site === 'key' ? rows : Array.from(tensor.coords[0]!, (i) => rows[i])
        const leaves = asked.some((v) => whole(v === undefined ? v : v * times) === undefined)
        let found: ReturnType<typeof remapParts> = []
        const refused = diagnosticOf(() => {
          found = remapParts(written(formatOf(site, e), 'z'), tensor.coords, null, givenTo(tensor, z))
        })
        if (refused) {
          expect(['format/map-overflow', 'check/literal-range']).toContain(refused.code)
          refusals++
          return
        }
        accepted++
        // What the text alone decides is folded, exactly.
        if (leaves) {
          expect(isSame(e, list)).toBe(true)
          return
        }
        const places = placesOf(site, tensor, rows as number[])
        for (const [k, { entries, columns }] of found.entries()) {
          const own = entries ? Array.from(entries) : places.map((_, p) => p)
          if (site === 'where') for (const p of own) expect(rows[tensor.coords[0]![p]!]! > 5).toBe(k === 0)
          expect(own.map((_, p) => columns.map((c) => c[p]))).toEqual(own.map((p) => places[p]))
        }
      }),
      { numRuns: runs(100) },
    )
    expect(refusals).toBeGreaterThan(0)
    expect(accepted).toBeGreaterThan(0)
  })
})

describe.each(DEVICES)('on $name', ({ kind, open }) => {
  const on = opened(open)
  test('a device rejects the same tensors as the host, and otherwise makes equal arrays', async () => {
    await fc.assert(
      fc.asyncProperty(tensors, lists, sites, term, async (tensor, z, site, e) => {
        const text = formatOf(site, e)
        const given = givenTo(tensor, z)
        let host: ReturnType<typeof arraysOf> | null = null
        const refused = diagnosticOf(() => {
          host = arraysOf(convertTensor(tensor, written(text, 'z'), given))
        })
        const from = await uploadResident(on.device, tensor)
        try {
          const there = await conversionPlan(on.device, written(text, 'z')).run(from, given)
          expect(arraysOf(await there.download())).toEqual(host)
          there.free()
        } catch (found) {
          if (!(found instanceof SptError)) throw found
          expect(found.diagnostics[0]!.code).toBe(refused?.code)
        } finally {
          from.free()
        }
      }),
      { numRuns: runs(kind === 'webgpu' ? 2 : 12) },
    )
  })
})
