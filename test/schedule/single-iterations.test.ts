/** Loops of one iteration: steps find what they find at larger extents, and results are the reference's. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { loopsOf } from '../../src/ir/statements/definitions.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs, type Inputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import { agreeOnStages } from '../properties/agree.ts'
import { runs } from '../support/cases.ts'
import { integers } from '../support/kernels.ts'
import { standard } from '../support/packaged-formats.ts'

const KERNEL = `${standard('row_groups', 'group_tiles', 'row_tiles')}
kernel k(groups: size, m: size, n: size, channels: size, columns: size) {
  axis g = dense_fixed(groups)
  axis i = sparse_variable(g, m)
  axis j = sparse_variable(i, n)
  axis x = dense_fixed(n)
  axis y = dense_fixed(m)
  axis c = dense_fixed(channels)
  axis o = dense_fixed(columns)
  buffer A: f32[g, i, j]    in
  buffer X: f32[x, c]       in
  buffer W: f32[g, c, o]    in
  buffer H: f32[g, i, j, o] local
  buffer Y: f32[y, o]       out
  iterate product [g, i, j, c, o] as SSSRS { H[g, i, j, o] += X[j, c] * W[g, c, o] }
  iterate scatter [g, i, j, o] as RRRS { Y[i, o] += A[g, i, j] * H[g, i, j, o] }
}`

/** Extents of a schedule's constant loops. */
interface Extents {
  readonly w: number
  readonly lanes: number
  readonly each: number
  readonly tiles: number
  readonly by: number
}
type Way = (e: Extents, inner: readonly string[], after: string) => string

const WAYS: Readonly<
  Record<string, { readonly way: Way; readonly inner: readonly string[]; readonly after: readonly string[] }>
> = {
  rows: {
    inner: ['co', 'product.jo', 'ci', 'ov'],
    after: [
      '',
      'unroll scatter.jo; unroll scatter.ov',
      'reorder (scatter.ov, scatter.jo)',
      'split scatter.jo by 2 -> (jq, jr)',
    ],
    way: ({ w, lanes, each, by }, inner, after) => `
  A as row_groups(${w})
  split product.o by ${lanes * each} -> (oo, oi)
  split oi by ${each} -> (ol, ov)
  split c by ${by} -> (co, ci)
  reorder (product.io, oo, ol, product.go, ${inner.join(', ')})
  cache_write H at product.go in register -> Hr
  compute_at scatter at product.go
  cache_write H at product.go in register
  bind product.io to block.x, ol to thread.x
  ${after}`,
  },
  tiles: {
    inner: ['co', 'product.jo', 'ci', 'ir', 'jr'],
    after: ['', 'unroll scatter.jo; unroll scatter.ir', 'reorder (scatter.jr, scatter.ir, scatter.jo)'],
    way: ({ w, lanes, each, tiles, by }, inner, after) => `
  A as group_tiles(${tiles * w})
  atomic Y
  split product.o by ${lanes * each} -> (oo, oj)
  split c by ${by} -> (co, ci)
  tile (product.io, oj) by (${w}, ${each}) -> (it, jt, ir, jr)
  reorder (product.go, oo, it, jt, ${inner.join(', ')})
  bind product.go to block.x, it to thread.y, jt to thread.x
  cache_write H at jt in register -> Hr
  compute_at scatter at jt
  cache_write H at jt in register
  ${after}`,
  },
  places: {
    inner: ['co', 'product.jo', 'ci', 'ir', 'jr'],
    after: ['', 'unroll scatter.ir; unroll scatter.jr', 'reorder (scatter.jr, scatter.ir, scatter.jo)'],
    way: ({ w, lanes, each, tiles, by }, inner, after) => `
  A as row_tiles(${tiles * w})
  split product.o by ${lanes * each} -> (oo, oj)
  split c by ${by} -> (co, ci)
  split product.ii by ${tiles} -> (ir, it)
  split oj by ${each} -> (jt, jr)
  reorder (product.io, oo, it, jt, product.go, product.ko, ${inner.join(', ')})
  cache_write H at product.ko in register -> Hr
  compute_at scatter at product.ko
  cache_write H at product.ko in register
  ${after}`,
  },
}

const extents: fc.Arbitrary<Extents> = fc.record({
  w: fc.integer({ min: 1, max: 3 }),
  lanes: fc.integer({ min: 1, max: 3 }),
  each: fc.integer({ min: 1, max: 2 }),
  tiles: fc.integer({ min: 1, max: 2 }),
  by: fc.integer({ min: 1, max: 2 }),
})
const LARGER: Extents = { w: 3, lanes: 2, each: 2, tiles: 2, by: 2 }

const drawn = fc.constantFrom(...Object.keys(WAYS)).chain((name) => {
  const { inner, after } = WAYS[name]!
  return fc.record({
    name: fc.constant(name),
    inner: fc.shuffledSubarray([...inner], { minLength: inner.length }),
    after: fc.constantFrom(...after),
    extents,
    seed: fc.nat(),
  })
})

function inputsOf(seed: number): Inputs {
  const [groups, m, n, channels, columns] = [3, 5, 4, 3, 5]
  const at: number[][] = []
  for (let e = 0, s = seed; e < groups * m * n; e++) {
    s = (Math.imul(s, 1103515245) + 12345) >>> 0
    if (s >>> 16 < 20000) at.push([Math.floor(e / (m * n)), Math.floor(e / n) % m, e % n])
  }
  return {
    tensors: {
      A: coords(
        [groups, m, n],
        [0, 1, 2].map((d) => Int32Array.from(at, (p) => p[d]!)),
        integers(at.length, seed),
      ),
      X: dense([n, channels], integers(n * channels, seed + 1)),
      W: dense([groups, channels, columns], integers(groups * channels * columns, seed + 2)),
    },
  }
}

/** A loop by its nest and name: what steps call it. */
const names = (c: Compilation): readonly string[] =>
  loopsOf(c.loops.body).map((l) => `${l.nest}.${l.name}${l.reduce ? ' reduce' : ''}`)

test('steps apply to the same loops for any extent, with equal results', () => {
  fc.assert(
    fc.property(drawn, ({ name, inner, after, extents, seed }) => {
      const text = (e: Extents): string => `${KERNEL}\nschedule k.s {${WAYS[name]!.way(e, inner, after)}\n}`
      const made = (e: Extents): Compilation => {
        try {
          const { compilation } = parseProgram(text(e)).kernel().schedule('s')
          void compilation.loops
          return compilation
        } catch (error) {
          throw new Error(`${(error as Error).message}\n${text(e)}`)
        }
      }
      const c = made(extents)
      expect(names(c), text(extents)).toEqual(names(made(LARGER)))
      const bound = bindInputs(c.kernel, inputsOf(seed))
      try {
        agreeOnStages(c, bound, reference(c.source, referenceInputs(c.source, bound)).buffers)
      } catch (error) {
        throw new Error(`${(error as Error).message}\n${text(extents)}`)
      }
    }),
    { numRuns: runs(30) },
  )
})

const SHARED = `${standard('csr')}
kernel rows(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer T: f32[i, j] local
  buffer y: f32[i]    out
  iterate row [i] as S {
    iterate twice [j] as S { T[i, j] = A[i, j] * 2 }
    iterate sum [j] as R { y[i] += T[i, j] }
  }
}`

test.each([1, 2])('rows that are split by %d have separate elements of a segment', (by) => {
  const steps = `split twice.j by ${by} -> (a, b); split sum.j by ${by} -> (c, d); bind i to block.x; bind b to thread.x`
  const c = parseProgram(`${SHARED} schedule rows.s { ${steps} }`).kernel().schedule('s').compilation
  const at = [
    [0, 0, 2],
    [1, 3, 0],
  ]
  const bound = bindInputs(c.kernel, {
    tensors: {
      A: coords(
        [3, 4],
        at.map((p) => Int32Array.from(p)),
        integers(3, by),
      ),
    },
  })
  agreeOnStages(c, bound, reference(c.source, referenceInputs(c.source, bound)).buffers)
})
