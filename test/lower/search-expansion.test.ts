/** Searches run before their statement, where the conditions of its expressions hold that protect what they read. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { Names } from '../../src/ir/expressions/bound-names.ts'
import {
  add,
  all,
  binary,
  type Expr,
  ge,
  int,
  load,
  lt,
  search,
  select,
  variable,
} from '../../src/ir/expressions/expr.ts'
import { printBody } from '../../src/ir/print/print-stage2.ts'
import type { Stmt } from '../../src/ir/statements/loops.ts'
import { when } from '../../src/ir/statements/statement-builders.ts'
import { expandSearches } from '../../src/lower/loops/search-expansion.ts'
import { interpreted, interpretedPlan } from '../support/interpreted.ts'

const [i, m] = [variable('i'), variable('m')]
const at = (k: Expr) => load('indptr', [k], 'index')
const found = search('next', 'indices', at(i), at(add(i, int(1))), variable('c'))
const there = lt(found, m)
const put: Stmt = { kind: 'store', buffer: 'C', index: [i], value: int(1) }
const named = (value: Expr): string =>
  printBody(expandSearches([{ kind: 'let', name: 'x', dtype: value.dtype, value }], new Names()))

/** The search, as it stands within `depth` conditions. */
const bisected = (depth: number, rest: string): string =>
  `\
alloc lo: i32[1] register
lo[0] = indptr[i]
while lo[0] < indptr[i + 1] and indices[lo[0]] <= c
  lo[0] = lo[0] + 1
${rest}`
    .split('\n')
    .map((line) => '  '.repeat(depth) + line)
    .join('\n')

const sometimes = (where: string): string => `\
alloc found: i32[1] register
found[0] = 0
if ${where}
${bisected(1, 'found[0] = lo[0]')}`

test('the conditions of a statement', () => {
  const [outer, ...rest] = expandSearches([when(all([lt(i, m), there]), [put])], new Names())
  expect(rest).toEqual([])
  expect(outer).toMatchObject({ kind: 'if', cond: lt(i, m) })
  // One that no condition protects runs before its own.
  const own = expandSearches([when(all([there, lt(i, m)]), [put])], new Names())
  expect(own.at(-1)!.kind).toBe('if')
  expect(own.length).toBeGreaterThan(1)
})

test('a single search is its own result', () => {
  expect(named(found)).toBe(bisected(0, 'let x = lo[0]'))
  expect(named(add(found, found))).toBe(bisected(0, 'let found = lo[0]\nlet x = found + found'))
})

test('conditions within an expression', () => {
  expect(named(all([lt(i, m), there]))).toBe(`${sometimes('i < m')}\nlet x = i < m and found[0] < m`)
  expect(named(binary('or', ge(i, m), there))).toBe(
    `${sometimes('not i >= m')}\nlet x = i >= m or found[0] < m`,
  )
  expect(named(select(lt(i, m), found, int(7)))).toBe(
    `${sometimes('i < m')}\nlet x = select(i < m, found[0], 7)`,
  )
  expect(named(select(ge(i, m), int(7), found))).toBe(
    `${sometimes('not i >= m')}\nlet x = select(i >= m, 7, found[0])`,
  )
})

test('a search of an earlier condition is reused', () => {
  const again = lt(load('A', [found], 'i32'), m)
  expect(named(all([lt(i, m), there, again]))).toBe(
    `${sometimes('i < m')}\nlet x = i < m and found[0] < m and A[found[0]] < m`,
  )
  expect(named(select(all([lt(i, m), there]), load('A', [found], 'i32'), int(7)))).toBe(
    `${sometimes('i < m')}\nlet x = select(i < m and found[0] < m, A[found[0]], 7)`,
  )
})

test('a search of a branch is not reused in the other branch', () => {
  expect(named(select(lt(i, m), found, add(found, int(1)))).match(/^ *while/gm)).toHaveLength(2)
})

// Found by the property tests, seed 15002: the position of a hole has no coordinate, and `P` was read at it.
test('a lookup under a named condition', () => {
  const k = parseProgram(`kernel k(m: size, p: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_fixed(i, p, 4)
  axis fu = fused(i, j)
  axis f = dense_fixed(d)
  axis c = dense_fixed(p)
  buffer A: i32[i, j] in
  buffer P: i32[c] in
  buffer Y: i32[f] out
  iterate first [fu, f] as RS where (select(i < A[i, P[j]], j <= 0, j < 2)) { Y[f] min= f + j }
}
schedule k.s {
  split fu by 2 -> (fo, fi)  atomic Y  bind fo to block.x  reorder (f, fi)  bind fi to thread.y
}`)
    .kernel('k')
    .schedule('s')
  const inputs = {
    tensors: {
      A: {
        kind: 'coords' as const,
        shape: [2, 3],
        coords: [Int32Array.of(0, 1, 1), Int32Array.of(1, 0, 2)],
        values: Int32Array.of(3, 1, 2),
        dtype: 'i32' as const,
      },
      P: { kind: 'dense' as const, shape: [3], values: Int32Array.of(2, 1, 0), dtype: 'i32' as const },
    },
    params: { m: 2, p: 3, d: 2 },
  }
  for (const run of [interpreted, interpretedPlan]) expect(run(k, inputs).get('Y')).toEqual([0, 1])
})

// Found by the property tests, seed 18004: no variable says where `P` is read, and what it says decides where `indptr` is.
test('indirect loads stay inside the bounds checks of their index', () => {
  const k = parseProgram(`kernel k(n: size) {
  axis i = dense_fixed(n)
  axis bi = dense_fixed(3)
  axis bj = sparse_variable(bi, n)
  axis b = dense_fixed(3)
  buffer B: i32[bi, bj] in
  buffer P: i32[b] in
  buffer Y: i32[i] out
  iterate s [i] as S { Y[i] = select(i > 0, B[P[1], i], 7) }
}`).kernel()
  const B = {
    kind: 'coords' as const,
    shape: [3, 2],
    coords: [Int32Array.of(0, 2), Int32Array.of(1, 1)],
    values: Int32Array.of(3, 4),
    dtype: 'i32' as const,
  }
  for (const [at, y] of [
    [-1, 0],
    [3, 0],
    [2, 4],
  ] as const) {
    const P = { kind: 'dense' as const, shape: [3], values: Int32Array.of(0, at, 0), dtype: 'i32' as const }
    expect(interpretedPlan(k, { tensors: { B, P } }).get('Y')).toEqual([7, y])
  }
})

// Found by the property tests, seed 20002: where the list ends decides whether its second element is there, and only that is asked.
test('a load at a constant position of a list stays inside the check of its length', () => {
  const k = parseProgram(`kernel k(m: size) {
  axis i = sparse_variable(m)
  axis c = dense_fixed(m)
  buffer A: i32[i] in
  buffer x: i32[c] in
  buffer Y: i32[] out
  iterate first [i] as R { Y[] += A[i] * x[i] }
}
schedule k.s {
  split i by 2 -> (ia, ib)  cache_read x at ia in shared  pipeline ia by 2  unroll x_shared.ib
}`)
    .kernel()
    .schedule('s')
  const A = {
    kind: 'coords' as const,
    shape: [4],
    coords: [Int32Array.of(3)],
    values: Int32Array.of(2),
    dtype: 'i32' as const,
  }
  const x = { kind: 'dense' as const, shape: [4], values: Int32Array.of(0, 0, 0, 5), dtype: 'i32' as const }
  expect(interpretedPlan(k, { tensors: { A, x } }).get('Y')).toEqual([10])
})
