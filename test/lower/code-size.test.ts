/** Short programs that could become long ones: what is shared stays shared, what is written out has a budget. */

import { expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { countText } from '../../src/ir/code-size-budgets.ts'
import { walkStmts } from '../../src/ir/statements/tree.ts'
import { dense, devices, type Kernel, load, SptError, type Tensor } from '../../src/node.ts'
import { interpreted, interpretedPlan } from '../support/interpreted.ts'
import { SHARED, WRITTEN_OUT } from './code-size-programs.ts'

const cpu = await devices.cpu()
const ROWS = 4

const kernelOf = async (text: string): Promise<Kernel> => (await load(text)).kernel('grow')
const scheduledOf = async (text: string): Promise<Kernel> => {
  const k = await kernelOf(text)
  return k.schedules.includes('s') ? k.schedule('s') : k
}

/** Characters of all texts, bound to threads where the target has any. */
function lengths(k: Kernel): readonly number[] {
  const chars = (of: Kernel, target: 'js' | 'wgsl' | 'cuda'): number =>
    of.compilation.texts(target).reduce((n, t) => n + t.text.length, 0)
  const parallel = k.parallel()
  return [chars(k, 'js'), chars(parallel, 'wgsl'), chars(parallel, 'cuda')]
}

function inputsOf(k: Kernel): { tensors: Record<string, Tensor>; params: Record<string, number> } {
  const tensors: Record<string, Tensor> = {}
  for (const b of k.compilation.source.buffers)
    if (b.role === 'in' || b.role === 'inout')
      tensors[b.name] = dense(
        b.axes.map(() => ROWS),
        Int32Array.from({ length: ROWS ** b.axes.length }, (_, e) => (e * 3 + 1) % ROWS),
      )
  return { tensors, params: { n: ROWS } }
}

for (const [name, program] of Object.entries(SHARED)) {
  test(`${name}: correct at every stage`, async () => {
    const k = await scheduledOf(program(10))
    const inputs = inputsOf(k)
    const prepared = await (await k.build(cpu)).bind(...flatInputs(inputs))
    expect((await prepared.verify()).problems).toEqual([])
    // Verifying leaves what is both read and written as it was.
    await prepared.run()
    const got = await prepared.outputs()
    for (const memory of [interpreted(k, inputs), interpretedPlan(k, inputs)])
      for (const [buffer, t] of Object.entries(got)) expect([...t.values!]).toEqual(memory.get(buffer))
  })

  test(`${name}: generated code grows in proportion to the program`, async () => {
    const [small, large] = [lengths(await scheduledOf(program(8))), lengths(await scheduledOf(program(16)))]
    for (const [k, n] of small.entries()) expect(large[k]! / n).toBeLessThan(2.7)
    expect(Math.max(...large)).toBeLessThan(100_000)
  })
}

for (const [name, { program, code }] of Object.entries(WRITTEN_OUT)) {
  test(`${name}: compiles within the budget`, async () => {
    expect(Math.max(...lengths(await scheduledOf(program(4))))).toBeLessThan(30_000)
  })

  test(`${name}: is rejected with the numbers and the location`, async () => {
    const error = await kernelOf(program(40)).then(
      (k) => {
        try {
          return k.schedule('s')
        } catch (e) {
          return e
        }
      },
      (e: unknown) => e,
    )
    expect(error).toBeInstanceOf(SptError)
    const [d] = (error as SptError).diagnostics
    expect(d).toMatchObject({ code, span: expect.anything(), hint: expect.any(String) })
    expect(`${d!.message} ${d!.expected}`).toMatch(/\d[\d,^]+.* at most [\d,]+/)
  })
}

/** Row blocks of a format, a nest each, in one launch: blocks find their nest by sums over the nests before. */
const MERGED = `import "sparsetile/kernels/formats.spt"
format blocks_of_rows(c) over (i, j) { partition i into c { part csr } }
kernel grow(n: size) {
  axis i = dense_fixed(n)
  axis j = sparse_variable(i, n)
  buffer A: i32[i, j] in
  buffer y: i32[i] out
  iterate go [i, j] as SR { y[i] += A[i, j] }
}
schedule grow.s(c) {
  A as blocks_of_rows(c)
  each part of A as p {
    split p.io by 4 -> (block, row)
    bind block to block.x, row to thread.x
  }
  merge parts of A
}`

test('nests in one launch: the work of every pass is linear in the number of nests', async () => {
  const k = await kernelOf(MERGED)
  const statements = (c: number): ReadonlyMap<string, number> => {
    const out = new Map<string, number>()
    k.schedule('s', c).compilation.observe((pass, result) => {
      const steps = result.stage === 2 ? [result] : result.steps
      walkStmts(
        steps.flatMap((x) => ('body' in x ? x.body : [])),
        () => out.set(pass, (out.get(pass) ?? 0) + 1),
      )
    })
    return out
  }
  const [small, large] = [statements(32), statements(64)]
  expect(small.size).toBeGreaterThan(20)
  for (const [pass, n] of small) expect(large.get(pass)! / n, pass).toBeLessThan(2.7)
})

test('large counts are told as powers of two', () => {
  expect([1, 999_999_999, 1e9, 2 ** 40].map(countText)).toEqual([
    '1',
    '999,999,999',
    'about 2^29',
    'about 2^40',
  ])
})
