/**
 * Statements that write what conditions, names and values around and beside them read: the value is the one before, for
 * all threads and for all that is asked later. Each case computed another thing once, or did not compile.
 */
import { describe, expect, test } from 'vitest'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import type { Inputs } from '../../src/run/bind/index.ts'
import { agreeOnAll } from '../properties/agree.ts'
import { refusal } from '../support/refusal.ts'

const [M, N] = [9, 5]
const numbers = (length: number, seed: number): Int32Array =>
  Int32Array.from({ length }, (_, k) => ((k * 7 + seed * 3) % 9) - 3)

const INPUTS: Inputs = {
  tensors: {
    V: dense([M], numbers(M, 7)),
    M: dense([M, N], numbers(M * N, 1)),
    W: dense([N], numbers(N, 2)),
    D: dense([M], numbers(M, 3)),
    E: dense([N], numbers(N, 4)),
    Z: dense([M, N], numbers(M * N, 5)),
    O: dense([M, N], numbers(M * N, 6)),
    T: dense([], Int32Array.of(2)),
    A: coords(
      [M, N],
      [
        [0, 0, 2, 5, 8],
        [1, 4, 0, 3, 2],
      ],
      Int32Array.of(2, -1, 3, 1, 4),
    ),
  },
}

const program = (body: string, schedule: string): string => `
kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis s = sparse_variable(i, n)
  buffer V: i32[i] in
  buffer M: i32[i, j] in
  buffer W: i32[j] in
  buffer A: i32[i, s] in
  buffer D: i32[i] inout
  buffer E: i32[j] inout
  buffer Z: i32[i, j] inout
  buffer O: i32[i, j] inout
  buffer T: i32[] inout
  ${body}
}
schedule k.s { ${schedule} }`

const scheduled = (body: string, schedule: string) =>
  parseProgram(program(body, schedule)).kernel().schedule('s').compilation

const UPDATE = 'iterate a [j] as S { if (E[j] > 0) { iterate b [i] as S { Z[i, j] = 1 } E[j] = 0 - E[j] } }'
const ROWS =
  'iterate a [i] as S { if (D[i] > 0) { iterate b [j] as R { D[i] += M[i, j] } iterate c [j] as S { Z[i, j] = D[i] } } }'
const COPIED = 'iterate a [j] as S { if (W[j] > 0) { iterate b [i] as S { Z[i, j] = M[i, j] } } }'

describe('conditions', () => {
  test.each([
    [
      'is not what another thread has written',
      UPDATE,
      'bind a.j to block.x split b.i by 4 -> (io, ii) bind ii to thread.x',
    ],
    [
      'is asked once by threads that meet under it',
      ROWS,
      `split a.i by 4 -> (io, ii) bind io to block.x, ii to thread.x
       split b.j by 2 -> (jo, ji) bind ji to thread.y split c.j by 2 -> (ko, ki) bind ki to thread.y`,
    ],
    [
      'of threads that have it in registers keeps no one from a barrier',
      'iterate a [i] as S { if (V[i] > 0) { iterate b [j] as R { D[i] += M[i, j] } iterate c [j] as S { Z[i, j] = D[i] } } }',
      `split a.i by 4 -> (io, ii) bind io to block.x, ii to thread.x
       split b.j by 2 -> (jo, ji) bind ji to thread.y split c.j by 2 -> (ko, ki) bind ki to thread.y
       cache_read V at ii in register`,
    ],
    [
      'on shared memory is one for all threads',
      COPIED,
      `bind a.j to block.z cache_read W at a.j in shared
       split b.i by 4 -> (io, ii) cache_write Z at b.io in shared bind b.ii to thread.x`,
    ],
    [
      'around launches is asked before the first',
      'iterate a [] where (T[] > 0) { iterate b [i] as R { T[] += D[i] } }',
      'atomic T bind b.i to block.x',
    ],
  ])('%s', (_, body, schedule) => agreeOnAll(scheduled(body, schedule), INPUTS))

  test('with two branches gives launches of both: an empty grid runs nothing', async () => {
    const body = 'iterate a [] { if (T[] > 9) { iterate b [i] as S { D[i] = 1 } } else { T[] = T[] + 1 } }'
    const compilation = scheduled(body, 'bind b.i to block.x')
    expect(compilation.planFor({}).steps.length).toBe(3)
    await agreeOnAll(compilation, INPUTS)
  })

  test('on thread-private registers is divergent', () => {
    const body = 'iterate a [i] as S { if (D[i] > 0) { iterate b [j] as S { Z[i, j] = W[j] } } }'
    const steps = 'split a.i by 4 -> (io, ii) bind io to block.x, ii to thread.x'
    const copied = 'split b.j by 2 -> (jo, ji) cache_read W at jo in shared'
    expect(refusal(() => scheduled(body, `${steps} ${copied}`)).code).toBe('schedule/shared-by-threads')
    expect(refusal(() => scheduled(body, `${steps} cache_read D at ii in register ${copied}`)).code).toBe(
      'schedule/shared-by-threads',
    )
  })

  test('that the first part of a loop changes is not evaluated again for the second', () => {
    const body = 'iterate a [i] as S where (D[i] > 0) { D[i] = 0 - D[i] iterate b [j] as S { Z[i, j] = 1 } }'
    expect(refusal(() => scheduled(body, 'fission a.i after 1')).code).toBe('schedule/nothing-to-separate')
  })

  test('on a copy is evaluated again at the write-back, unless the copy has changed', async () => {
    const body = 'iterate a [i, j] as SS { if (M[i, j] > 0) { iterate b [s] as R { Z[i, j] += A[i, s] } } }'
    await agreeOnAll(
      scheduled(body, 'cache_read M at a.j in register cache_write Z at a.j in register'),
      INPUTS,
    )
    const changing =
      'iterate a [i, j] as SS { if (O[i, j] > 0) { iterate b [s] as R { Z[i, j] += A[i, s] } O[i, j] = 0 } }'
    expect(refusal(() => scheduled(changing, 'cache_write Z at a.j in register')).code).toBe(
      'schedule/not-every-element',
    )
  })
})

describe('values', () => {
  test.each([
    [
      'of a name is that where it stands',
      'iterate a [i] as S { let x = D[i] D[i] = 1 iterate b [j] as S { Z[i, j] = x } }',
    ],
    [
      'of names of names too',
      'iterate a [i] as S { let x = D[i] let y = x * 2 D[i] = 1 iterate b [j] as S { Z[i, j] = y } }',
    ],
    [
      'of a name that a round of a loop changes',
      'iterate a [i] as S { let x = D[i] iterate b [j] as R { D[i] += M[i, j] * x } }',
    ],
    [
      'of a name in a branch',
      'iterate a [i] as S { let x = D[i] if (x > 0) { D[i] = 0 - x D[i] = D[i] + x } }',
    ],
    [
      'of a name outside of loops',
      'iterate a [] { let x = T[] T[] = 0 - x iterate b [i] as S { D[i] = x } }',
    ],
    ['of a tuple are those before', 'iterate a [i, j] as SS { (Z[i, j], O[i, j]) = (O[i, j], Z[i, j]) }'],
  ])('%s', (_, body) => agreeOnAll(scheduled(body, ''), INPUTS))

  test('are kept if they are used afterwards, and only then', () => {
    const kept = (body: string): boolean =>
      scheduled(body, '')
        .texts('cuda')
        .some((t) => t.text.includes('x ='))
    expect(kept('iterate a [i] as S { let x = D[i] * 2 D[i] = x }')).toBe(false)
    expect(kept('iterate a [i] as S { let x = D[i] * 2 D[i] = x iterate b [j] as S { O[i, j] = x } }')).toBe(
      true,
    )
  })
})
