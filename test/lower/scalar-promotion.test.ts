/** Elements that loops combine into are in registers meanwhile, on targets that ask for it. */
import { expect, test } from 'vitest'
import type { SptProgram } from '../../src/api/programs/program.ts'
import { emit, TARGETS } from '../../src/backends/targets/index.ts'
import { coords, dense, type Kernel, load } from '../../src/node.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { verify3 } from '../../src/verifiers/stage3.ts'

const program = (type: string, more: string, body: string): Promise<SptProgram> => {
  const outputs = [`Y: ${type}[i] ${more}`, 'Z: i32[i] out', `s: ${type}[] ${more}`]
  return load(`monoid both(x: f32, y: i32) {
  identity (0, 1)
  combine (a, b) = (a.x + b.x, a.y * b.y)
}
kernel k(n: size, m: size) {
  axis i = dense_fixed(n) axis j = dense_fixed(m)
  buffer V: f32[i] in buffer W: f32[j] in buffer N: i32[j] in
  ${outputs.flatMap((o) => (body.includes(`${o[0]}[`) ? [`buffer ${o}`] : [])).join(' ')}
  ${body}
}`)
}

const DATA = {
  V: Float32Array.of(1, -2, 3, 0),
  // No sum of them in f32, one after the other, is right.
  W: Float32Array.of(16777216, 1, 1, 1, 1, -3),
  N: Int32Array.of(2147483647, 1, 255, -7, 65536, 65536),
}

/** Declarations, a body, and what is in registers. */
const CASES: readonly (readonly [type: string, more: string, body: string, registers: readonly string[]])[] =
  [
    ['f32', 'out', 'iterate p [i, j] as SR { Y[i] += W[j] * V[i] }', ['Y']],
    ['f64', 'out', 'iterate p [i, j] as SR { Y[i] += f64(W[j]) * f64(V[i]) }', ['Y']],
    ['f32', 'inout', 'iterate p [i, j] as SR { Y[i] += W[j] }', ['Y']],
    ['f32', 'out', 'iterate p [i, j] as SR { Y[i] min= W[j] / V[i] }', ['Y']],
    ['f32', 'out', 'iterate p [i, j] as SR { Y[i] max= (W[j] - W[j]) / V[i] }', ['Y']],
    ['i32', 'out', 'iterate p [i, j] as SR { Y[i] += N[j] + i }', ['Y']],
    ['i32', 'out', 'iterate p [i, j] as SR { Y[i] *= N[j] + i }', ['Y']],
    ['u32', 'out', 'iterate p [i, j] as SR { Y[i] += u32(N[j] + i) }', ['Y']],
    ['bool', 'out', 'iterate p [i, j] as SR { Y[i] or= W[j] > 2.0 }', ['Y']],
    ['bool', 'out', 'iterate p [i, j] as SR { Y[i] and= W[j] > 2.0 }', ['Y']],
    // Narrow types accumulate as declared.
    ['u8', 'out', 'iterate p [i, j] as SR { Y[i] += u8(N[j]) }', []],
    ['i8', 'out', 'iterate p [i, j] as SR { Y[i] max= i8(N[j]) }', []],
    ['f16', 'out accumulate f16', 'iterate p [i, j] as SR { Y[i] += f16(V[i]) }', []],
    ['f16', 'out', 'iterate p [i, j] as SR { Y[i] += f16(V[i]) }', ['Y_wide']],
    // Conditions around loops, and on what they combine.
    ['f32', 'out', 'iterate p [i, j] as SR where (V[i] > 0) { Y[i] += W[j] }', ['Y']],
    ['f32', 'out', 'iterate p [i, j] as SR where (W[j] > 0) { Y[i] += W[j] }', ['Y']],
    ['f32', 'inout', 'iterate p [i, j] as SR where (W[j] > 0) { Y[i] += W[j] }', ['Y']],
    ['f32', 'out', 'iterate p [i, j] as SR where (j != i) { Y[i] += W[j] }', ['Y']],
    ['f32', 'out', 'iterate p [i, j] as SR { if (j < i) { Y[i] += W[j] } else { Y[i] += 1 } }', ['Y']],
    ['f32', 'inout', 'iterate p [j] as R where (W[j] > 0) { s[] += W[j] }', ['s']],
    // The outermost loop that names the element alike.
    ['f32', 'out', 'iterate p [i, j] as RR { s[] += W[j] * V[i] }', ['s']],
    ['f32', 'inout', 'iterate p [i, j] as RR { s[] += W[j] * V[i] }', ['s']],
    ['f32', 'out', 'iterate p [i, j] as SR { (Y[i], Z[i]) both= (W[j], N[j]) }', ['Y', 'Z']],
    // Others of the buffer are touched in the loop.
    ['f32', 'inout', 'iterate p [j] as R { Y[N[j] % 2] += W[j] }', []],
    ['f32', 'inout', 'iterate p [j] as R { Y[0] += W[j] Y[1] += W[j] }', []],
  ]

test.each(CASES)('%s %s: %s', async (type, more, body, registers) => {
  const loaded = await program(type, more, body)
  const kernel = loaded.kernel()
  const text = textOf(kernel)
  const names = [...text.matchAll(/let (\w+)_at\w* = (?:0|false);/g)].map((x) => x[1])
  expect(names).toEqual(registers)
  const compiled = await kernel.build(createCpuDevice())
  for (const m of [6, 0])
    for (const n of body.includes(' Y[i]') || body.includes('s[') ? [4, 0] : [4]) {
      const few = { V: DATA.V.slice(0, n), W: DATA.W.slice(0, m), N: DATA.N.slice(0, m) }
      const own = body.includes('Y[') ? { Y: new Float32Array(n).fill(5) } : { s: Float32Array.of(5) }
      const given = more.startsWith('inout') ? { ...few, ...own } : few
      const prepared = await compiled.bind({ ...given, n, m })
      expect((await prepared.verify()).problems, `${n} ${m}\n${text}`).toEqual([])
    }
})

test('sums in f32 round once', async () => {
  const loaded = await program('f32', 'out', CASES[0]![2])
  const compiled = await loaded.kernel().build(createCpuDevice())
  const W = Float32Array.of(16777216, 1, 1, 1, 1)
  const V = new Float32Array(4).fill(1)
  const { Y } = await compiled({ V, W, N: new Int32Array(5), n: 4, m: 5 })
  expect([...(Y as { values: Float32Array }).values]).toEqual([16777220, 16777220, 16777220, 16777220])
})

test('other targets do not need it', async () => {
  const loaded = await program('f32', 'out', CASES[0]![2])
  const { compilation } = loaded.kernel()
  const plain = compilation.planFor({})
  for (const target of ['wgsl', 'cuda'] as const)
    expect(emit(compilation.planFor(TARGETS[target].lowering), target)).toEqual(emit(plain, target))
})

function textOf(kernel: Kernel): string {
  const plan = kernel.compilation.planFor(TARGETS.js.lowering)
  verify3(plan)
  return emit(plan, 'js')[0]!.text
}

test('the initialisation of an element is kept if the loop is removed', async () => {
  const loaded = await load(`kernel k(m: size, n: size) {
    axis i = dense_fixed(m) axis j = sparse_variable(i, n)
    buffer A: f32[i, j] in buffer Y: f32[i] out buffer Z: f32[i] inout
    iterate p [i, j] as SR { Y[i] max= A[i, j] Z[i] += A[i, j] }
  }`)
  const compiled = await loaded.kernel().build(createCpuDevice())
  const A = coords(
    [4, 1],
    [
      [2, 0],
      [0, 0],
    ],
    Float32Array.of(1, 2),
  ) // prettier-ignore
  const prepared = await compiled.bind({ A, Z: dense([4], new Float32Array(4)) })
  expect((await prepared.verify()).problems).toEqual([])
})
