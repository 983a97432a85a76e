/** Threads that reduce together ask before they read or write what a condition protects. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { interpretPlan } from '../../src/interpret/stage3.ts'
import { bindInputs } from '../../src/run/bind/index.ts'

const kernel = (body: string): string => `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer P: i32[i] in
  buffer A: f32[i, j] in
  buffer Y: f32[i] out
  iterate first [i, j] as RR { ${body} }
}
schedule k.s { atomic Y  bind i to block.x  split j by 4 -> (a, b)  bind b to thread.x }`

test.each([
  'Y[P[i + 2]] += A[i, j]',
  'if (i + 2 < m) { Y[P[i + 2]] += A[i, j] }',
  'if (P[i] >= 0) { Y[P[i]] += A[i, j] }',
])('%s', (body) => {
  const { compilation } = parseProgram(kernel(body)).kernel().schedule('s')
  const P = Int32Array.of(7, -3, 1, 0)
  const A = Float32Array.from({ length: 4 * 6 }, (_, k) => k % 5)
  const bound = bindInputs(compilation.kernel, {
    tensors: {
      P: { kind: 'dense', shape: [4], values: P, dtype: 'i32' },
      A: { kind: 'dense', shape: [4, 6], values: A, dtype: 'f32' },
    },
    params: { m: 4, n: 6 },
  })
  for (const options of [{}, { lanes: 4, together: true }, { lanes: 32 }]) {
    const plan = compilation.planFor(options)
    const memory = new Map(
      plan.buffers
        .filter((b) => bound.arrays.has(b.name) || b.role === 'out')
        .map((b) => [b.name, Array.from(bound.arrays.get(b.name) ?? new Float32Array(4), Number)]),
    )
    // The interpreter refuses what is out of range.
    interpretPlan(plan, memory, bound.params)
    const want = [0, 0, 0, 0]
    for (let i = 0; i < 4; i++) {
      const at = body.includes('i + 2') ? (i + 2 < 4 ? P[i + 2]! : body.startsWith('Y') ? 0 : -1) : P[i]!
      for (let j = 0; j < 6; j++) if (at >= 0 && at < 4) want[at]! += A[i * 6 + j]!
    }
    expect(memory.get('Y')).toEqual(want)
  }
})
