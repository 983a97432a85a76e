/** Neighbouring elements as one access, in the text of a target that has them. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SPELLINGS } from '../../src/backends/targets/cuda/spellings.ts'
import { vectorAccesses, type Widths } from '../../src/backends/vectors/vectorize-accesses.ts'
import {
  add,
  builtin,
  constant,
  type Expr,
  int,
  load,
  lt,
  mul,
  select,
  variable,
} from '../../src/ir/expressions/expr.ts'
import type { Kernel3, Stmt } from '../../src/ir/statements/loops.ts'
import { local, store, when } from '../../src/ir/statements/statement-builders.ts'
import { type Body, stmt, walkStmts } from '../../src/ir/statements/tree.ts'

const textOf = (buffers: string, statement: string): string =>
  parseProgram(`kernel k(d: size, n: size) {
  axis i = dense_fixed(4 * d)
  axis j = dense_fixed(n)
  axis e = dense_fixed(8)
  ${buffers}
  buffer y: f32[i] out
  iterate s [i] as S { y[i] = ${statement} }
}
schedule k.fours {
  split i by 4 -> (io, iv)
  unroll iv
}`)
    .kernel()
    .schedule('fours')
    .emit('cuda')[0]!.text

test('loads begin where a vector does', () => {
  const text = textOf('buffer x: f32[i, e] in', 'x[i, 1] + x[i, 2] + x[i, 3] + x[i, 4]')
  expect(text).not.toContain('*(const float4*)(x')
  expect(text.match(/\*\(const float2\*\)\(x \+ .* \+ 2\)/g)).toHaveLength(4)
})

test('values of a vector store may come from separate loads', () => {
  const text = textOf('buffer t: i32[i] in\n  buffer x: f32[j] in', 'x[t[i]]')
  expect(text).toContain('*(const int4*)(t')
  expect(text).toContain('*(float4*)__builtin_assume_aligned(y')
})

test('a select that reads before the vector load is kept scalar', () => {
  const program = parseProgram(`kernel k(m: size, d: size) {
    axis i = sparse_variable(m)
    axis f = dense_fixed(d)
    buffer a: f32[i] in
    buffer x: f32[f] in
    buffer y: f32[f] out
    iterate s [i, f] as RS {
      if (m > 0) { y[f] *= min(select(f == 1, a[i], x[f]), min(a[i], a[i])) }
      else { y[f] *= min(max(f32(1), x[f]), a[i]) }
    }
  }
  schedule k.fours {
    split f by 4 -> (fo, fv)
    vectorize fv
    split i by 2 -> (io, ii)
    split fo by 4 -> (foo, foi)
    fuse (foo, foi)
    atomic y
  }`)
  const { text } = program.kernel().schedule('fours').emit('cuda')[0]!
  const lines = text.split('\n')
  const declared = lines.findIndex((l) => l.includes('const float x_0 = '))
  expect(declared).toBeGreaterThan(0)
  expect(lines.slice(0, declared).filter((l) => /\bx_\d\b/.test(l))).toEqual([])
})

describe('a straight line', () => {
  const planOf = (body: Body): Kernel3 => ({
    stage: 3,
    name: 'k',
    params: [],
    buffers: ['x', 'y'].map((name) => local(name, 'f32', [int(64)], 'global')),
    steps: [{ kind: 'launch', name: 'k', grid: [int(1), int(1), int(1)], block: [32, 1, 1], body } as never],
  })
  const reads = (...at: readonly number[]): Body =>
    at.map((k) => stmt<Stmt>({ kind: 'let', name: `v${k}`, dtype: 'f32', value: load('x', [int(k)], 'f32') }))
  const writes = (buffer: string, at: number): Stmt => store(buffer, [int(at)], constant(1, 'f32'))

  const define = (name: string, value: Expr): Stmt =>
    stmt<Stmt>({ kind: 'let', name, dtype: value.dtype, value })
  const widths = (body: Body, target: Widths = SPELLINGS): number[] => {
    const found: number[] = []
    for (const s of vectorAccesses(planOf(body), target).steps)
      if (s.kind === 'launch')
        walkStmts(s.body, (x) => {
          if (x.kind === 'vector_load') found.push(x.names.length)
        })
    return found
  }

  // As the addresses of unrolled loops are, once what they share has a name.
  test('has equal vectors for any number of address names', () => {
    const constants = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 4 })
    const rows = fc.array(fc.tuple(constants, fc.boolean()), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(rows, fc.integer({ min: 1, max: 5 }), (rows, count) => {
        const lane = mul(builtin('thread.x'), int(4))
        const named: Stmt[] = [define('lane', lane)]
        const direct: Stmt[] = [define('lane', lane)]
        rows.forEach(([constants, turned], r) => {
          let at: Expr = variable('lane')
          constants.forEach((c, k) => {
            named.push(define(`a${r}_${k}`, turned ? add(int(c), at) : add(at, int(c))))
            at = variable(`a${r}_${k}`)
          })
          const sum = constants.reduce((a, c) => a + c, 0)
          for (let k = 0; k < count; k++) {
            named.push(define(`v${r}_${k}`, load('x', [add(at, int(k))], 'f32')))
            direct.push(define(`v${r}_${k}`, load('x', [add(variable('lane'), int(sum + k))], 'f32')))
          }
        })
        expect(widths(named)).toEqual(widths(direct))
      }),
    )
    const twice = [
      define('lane', mul(builtin('thread.x'), int(4))),
      define('a', add(int(4), variable('lane'))),
    ]
    const four = [0, 1, 2, 3].map((k) => define(`v${k}`, load('x', [add(variable('a'), int(k))], 'f32')))
    expect(widths([...twice, define('b', add(variable('a'), int(1))), ...four])).toEqual([4])
  })

  test('treats an address named before a write as different', () => {
    const four = (name: string): Stmt => define(name, mul(load('y', [int(0)], 'i32'), int(4)))
    const two = (name: string, from: number): Stmt[] =>
      [from, from + 1].map((k) => define(`v${k}`, load('x', [add(variable(name), int(k))], 'f32')))
    expect(widths([four('a'), ...two('a', 0), four('b'), ...two('b', 2)])).toEqual([4])
    expect(widths([four('a'), ...two('a', 0), writes('y', 0), four('b'), ...two('b', 2)])).toEqual([2, 2])
  })

  // Whichever of them are chosen, and whatever decides.
  test('vectorises reads of selects if both sides are evaluated', () => {
    const choices = fc.array(fc.tuple(fc.integer({ min: 0, max: 2 }), fc.boolean()), {
      minLength: 4,
      maxLength: 4,
    })
    fc.assert(
      fc.property(choices, fc.integer({ min: 0, max: 5 }), (choices, vector) => {
        const body = choices.map(([cond, turned], k) => {
          const element = load('x', [int(4 * vector + k)], 'f32')
          const none = constant(0, 'f32')
          const asked = lt(int(cond), variable('n'))
          return define(`v${k}`, turned ? select(asked, none, element) : select(asked, element, none))
        })
        expect(widths(body, { ...SPELLINGS, widths: () => [4], eagerOps: {} })).toEqual([4])
        expect(widths(body, { ...SPELLINGS, widths: () => [4] })).toEqual([])
      }),
    )
  })

  test.each<[string, Stmt, readonly number[]]>([
    ['another buffer is written', writes('y', 2), [4]],
    ['other elements are written', writes('x', 8), [4]],
    ['an element is written that is read later', writes('x', 2), [2]],
    ['a condition writes', when(lt(int(0), variable('n')), [writes('x', 2)]), [2, 2]],
    ['a barrier lets other threads write', stmt({ kind: 'barrier' }), [2, 2]],
  ])('loads around which %s', (_, between, lengths) => {
    expect(widths([...reads(0, 1), between, ...reads(2, 3), writes('x', 16)])).toEqual(lengths)
  })

  test('is unchanged without vectorisable accesses', () => {
    const plan = planOf([...reads(0, 2), when(lt(int(0), variable('n')), [writes('y', 1)])])
    expect(vectorAccesses(plan, SPELLINGS)).toBe(plan)
  })
})
