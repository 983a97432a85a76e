/** What \`as\` makes of single statements, and what it refuses. */
import { describe, expect, test } from 'vitest'
import { print1 } from '../../../src/ir/print/print-stage1.ts'
import { verify1 } from '../../../src/verifiers/stage1.ts'
import { diagnosticOf } from '../../support/refusal.ts'
import { pair } from './apply.ts'
import { FORMATS } from './formats.ts'

const kernel = (buffers: string, body: string): string => `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis c = dense_fixed(n)
  buffer A: f32[i, j] in
  ${buffers}
  ${body}
}`

const applied = (text: string, steps: string): string => {
  const { kernel: k } = pair(FORMATS + text, steps)
  verify1(k)
  return print1(k)
}

const refusal = (text: string, steps: string): string => {
  const d = diagnosticOf(() => pair(FORMATS + text, steps))
  return d ? `${d.code}: ${d.message}` : 'accepted'
}

/** Iterations alone: what stands after the buffers. */
const body = (text: string): string => text.slice(text.indexOf('  iterate'))

const SUM = kernel('buffer y: f32[i] out', 'iterate sum [i, j] as SR { y[i] += A[i, j] }')

test('a set may be a tensor of the kernel', () => {
  const chosen = 'format chosen(M: set) over (i, j) { part csr where (held(M)) part csr }\n'
  const masked = kernel(
    'buffer M: f32[i, j] in buffer y: f32[i] out',
    'iterate sum [i, j] as SR { y[i] += A[i, j] }',
  )
  expect(refusal(chosen + masked, 'A as chosen(M)')).toBe('accepted')
})

describe('kinds', () => {
  test.each([
    ['bsr(2)', 'iterate sum [io, jo, ii, ji] as SRSR'],
    ['csc', 'iterate sum [jo, io] as RS'],
    ['coo', 'iterate sum [io, jo] as RR'],
    ['sell(2, 4)', 'iterate sum [so, k, ii, jo] as SRSR'],
    ['pieces_ell(2)', 'iterate sum [io, p, jo] as SRR'],
    ['sr_bcrs(2, 2)', 'iterate sum [so, go, jo, ii] as SRRS'],
    ['bitmap_blocks', 'iterate sum [io, jo, e] as SRR'],
    ['dia', 'iterate sum [do, ii] as RS'],
    ['vbr(rows, cols)', 'iterate sum [io, jo, ii, ji] as RRRR'],
  ])('%s', (use, head) => {
    expect(applied(SUM, `A as ${use}`)).toContain(head)
  })
})

describe('nests', () => {
  const NEST = kernel(
    'buffer x: f32[i] in\n buffer y: f32[i] out\n buffer z: f32[i] out',
    `iterate row [i] as S {
      let a = x[i]
      y[i] = a
      iterate sum [j] as R { z[i] += a * A[i, j] }
      y[i] = y[i] + z[i]
    }`,
  )

  test('are kept for a single part', () => {
    expect(body(applied(NEST, 'A as ell'))).toBe(`  iterate row [io] as S {
    let a = x[io]
    y[io] = a
    iterate sum [jo] as R {
      z[io] += a * A[io, jo]
    }
    y[io] = y[io] + z[io]
  }
}`)
  })

  test('are split for several parts; lets are computed anew', () => {
    expect(body(applied(NEST, 'A as two_sides'))).toBe(`  iterate row [i] as S {
    let a = x[i]
    y[i] = a
  }
  iterate sum_p0 [io_p0, jo_p0] as SR {
    let a = x[io_p0]
    z[io_p0] += a * A_p0[io_p0, jo_p0]
  }
  iterate sum_p1 [io_p1, jo_p1] as SR {
    let a = x[io_p1]
    z[io_p1] += a * A_p1[io_p1, jo_p1]
  }
  iterate row_2 [i] as S {
    y[i] = y[i] + z[i]
  }
}`)
  })

  test('are split if the only part has no axis for the rows', () => {
    expect(body(applied(NEST, 'A as csc'))).toContain('iterate sum [jo, io] as RS')
  })

  test('are rejected if a let reads a value that changes before its use', () => {
    const text = kernel(
      'buffer y: f32[i] inout\n buffer z: f32[i] out',
      `iterate row [i] as S {
        let a = y[i]
        y[i] = 2.0
        iterate sum [j] as R { z[i] += a * A[i, j] }
      }`,
    )
    expect(refusal(text, 'A as two_sides')).toBe(
      'schedule/format-distribute: two_sides separates the iterations inside row, and let a reads y, which is overwritten before the last use',
    )
  })

  test('are rejected if a condition reads values that its own branch changes', () => {
    const text = kernel(
      'buffer y: f32[i] inout\n buffer z: f32[i] out',
      `iterate row [i] as S {
        if (y[i] > 0.0) {
          y[i] = 0.0
          iterate sum [j] as R { z[i] += A[i, j] }
        }
      }`,
    )
    expect(refusal(text, 'A as two_sides')).toContain('a condition reads y')
  })

  test('a condition of an inner iteration is evaluated before its body changes its inputs', () => {
    const text = kernel(
      'buffer y: f32[i, j] inout\n buffer z: f32[i] out',
      `iterate row [i] as S {
        z[i] = 1.0
        iterate least [j] as S where (y[i, j] > A[i, j]) { y[i, j] = A[i, j] }
      }`,
    )
    expect(refusal(text, 'A as two_sides')).toBe('accepted')
  })

  test('a let before an inner reduction is not evaluated again inside', () => {
    const text = kernel(
      'buffer y: f32[i] inout',
      `iterate row [i] as S {
        let a = y[i]
        iterate sum [j] as R { y[i] += a * A[i, j] }
      }`,
    )
    expect(refusal(text, 'A as two_sides')).toContain('let a reads y')
  })
})

test('constants changed by a cast give no fact about padding', () => {
  const cast = (value: string): string =>
    kernel('buffer Q: i32[i, j] out', `iterate write [i, j] as SS { Q[i, j] = ${value} }`)
  for (const value of ['i32(2.5)', 'i32(nan)', 'i32(bool(0.5))', 'i32(i8(f32(2.5)))'])
    expect(body(applied(cast(value), 'A as bsr(2)'))).toContain('Q')
})

describe('accesses at other coordinates', () => {
  const other = (access: string): string =>
    kernel('buffer y: f32[i, c] out', `iterate read [i, c] as SS { y[i, c] = ${access} }`)

  test('go through the map, in range', () => {
    expect(body(applied(other('A[i, c]'), 'A as bsr(2)'))).toContain('= A[i / 2, c / 2, i % 2, c % 2]')
    expect(body(applied(other('A[i, c + 1]'), 'A as bsr(4)'))).toContain(
      '= select(c + 1 >= 0 and c + 1 < n, A[i / 4, (c + 1) / 4, i % 4, (c + 1) % 4], 0)',
    )
  })

  test('find their part by the selection if it is arithmetic', () => {
    expect(body(applied(other('A[i, c]'), 'A as two_sides'))).toContain(
      '= select(c / ceildiv(n, 2) == 0, A_p0[i, c], A_p1[i, c])',
    )
  })

  test('find it by values other than the fill value otherwise', () => {
    expect(body(applied(other('A[i, c]'), 'A as csr where (top(1 by i)) + dcsr'))).toContain(
      '= select(A_csr[i, c] != 0, A_csr[i, c], A_dcsr[i, c])',
    )
  })

  test('are rejected if the map queries stored elements', () => {
    expect(refusal(other('A[i, c]'), 'A as sell(2, 4)')).toContain('schedule/format-lookup: A is accessed')
  })

  test('writes are not distributed over parts', () => {
    const text = kernel(
      'buffer D: f32[i, j] inout',
      'iterate w [i, c] as SS { D[i, c] = 1.0 }\n iterate s [i, j] as SS { D[i, j] = A[i, j] }',
    )
    expect(refusal(text, 'A as two_sides')).toContain('schedule/format-lookup: D is written')
  })
})

describe('several formats', () => {
  const TWO = `kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    axis p = dense_fixed(n)
    axis q = sparse_variable(p, m)
    buffer A: f32[i, j] in
    buffer B: f32[p, q] in
    buffer y: f32[i] out
    buffer z: f32[p] out
    iterate first [i, j] as SR { y[i] += A[i, j] }
    iterate second [p, q] as SR { z[p] += B[p, q] }
  }`

  test('one after the other', () => {
    const text = body(applied(TWO, 'A as two_sides\nB as csr'))
    expect(text).toContain('iterate first_p1 [io_p1, jo_p1] as SR')
    expect(text).toContain('iterate second [io, jo] as SR')
  })

  test('a part in a separate format', () => {
    const text = body(applied(TWO, 'A as two_sides\nA_p1 as by_length'))
    expect(text).toContain('iterate first_p0 [io_p0, jo_p0] as SR')
    expect(text).toContain('iterate first_p1_w4 [io_w4, jo_w4] as SR')
  })

  test('a tensor in parts has no single buffer', () => {
    expect(refusal(TWO, 'A as two_sides\nA as csr')).toBe(
      'schedule/unknown-buffer: A is stored in parts: A_p0, A_p1',
    )
  })
})

test('two iterators over the structure are rejected', () => {
  const text = kernel(
    'buffer y: f32[i] out',
    'iterate pairs [i, j, l in j] as SRR { y[i] += A[i, j] * A[i, l] }',
  )
  expect(refusal(text, 'A as csr')).toContain('schedule/format-twice: iteration pairs runs over j twice')
})

test('an iteration over a prefix of the structure is not restricted to a part', () => {
  const text = `kernel k(m: size, n: size) {
    axis i = sparse_variable(m)
    axis j = sparse_variable(i, n)
    axis r = dense_fixed(m)
    buffer A: f32[i, j] in
    buffer y: f32[r] out
    iterate rows [i] as S { y[i] += 1.0 }
    iterate sum [i, j] as SR { y[i] += A[i, j] }
  }`
  expect(refusal(text, 'A as dcsr')).toBe('accepted')
  expect(refusal(text, 'A as two_sides')).toContain('which several parts of two_sides may hold')
})

describe('padding', () => {
  const COPY = (
    target: string,
    more = 'iterate zero [i, c] as SS { y[i, c] = 0.0 }',
  ): string => `kernel k(m: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, m)
    axis c = dense_fixed(m)
    buffer A: f32[i, j] in
    buffer D: f32[i, j] out
    buffer y: f32[i, c] out
    iterate copy [i, j] as SS { ${target} = A[i, j] + 1.0 }
    ${more}
  }`

  test('writes to the own element in padding are ignored', () => {
    expect(refusal(COPY('D[i, j]'), 'A as bsr(2)')).toBe('accepted')
  })

  test('writes to other elements would change results', () => {
    expect(refusal(COPY('D[j, i]'), 'A as bsr(2)')).toContain('schedule/format-padding')
  })

  test('padding with coordinates would be found by lookups', () => {
    const read = 'iterate read [i, c] as SS { y[i, c] = D[i, c] }'
    expect(refusal(COPY('D[i, j]', read), 'A as bsr(2)')).toContain('schedule/format-padding')
    expect(refusal(COPY('D[i, j]', read), 'A as csc')).toBe('accepted')
  })
})
