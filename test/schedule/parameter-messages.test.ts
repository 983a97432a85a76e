/** Who gives arguments to formats and schedules need not know their texts: what is refused of these names the parameters. */
import { readdirSync } from 'node:fs'
import { beforeAll, expect, test } from 'vitest'
import { load, type SptProgram } from '../../src/node.ts'
import { sample } from '../support/cases.ts'
import { diagnosticOf } from '../support/refusal.ts'

const programs: SptProgram[] = []
beforeAll(async () => {
  const folder = new URL('../../kernels/', import.meta.url)
  const files = readdirSync(folder).filter((f) => f.endsWith('.spt'))
  // One has such schedules in any case.
  for (const file of new Set(['gather-gemm-scatter.spt', ...sample(files, 8)]))
    programs.push(await load(new URL(file, folder).pathname))
})

test('factors of schedules', () => {
  let refused = 0
  for (const program of programs)
    for (const name of program.kernels) {
      const kernel = program.kernel(name)
      for (const schedule of kernel.schedules) {
        const params = kernel.parameters(schedule)
        for (const [k, param] of params.entries()) {
          const args = params.map((p, at) => (at === k ? 0 : p.required ? 8 : undefined))
          const found = diagnosticOf(() => void kernel.schedule(schedule, ...args).compilation.loops)
          if (found?.code !== 'schedule/bad-factor') continue
          refused++
          expect(found.message).toMatch(new RegExp(`, where (.*, )?${param.name} = 0(, |$)`))
        }
      }
    }
  expect(refused).toBeGreaterThan(0)
})

test('of a step without parameters, those of the schedule', async () => {
  const program = await load(`kernel k(m: size) {
  axis i = dense_fixed(m)
  buffer A: f32[i] in
  buffer B: f32[i] out
  iterate copy [i] as S { B[i] = A[i] }
}
schedule k.s(t, u = 4) {
  split i by t -> (io, ii)
  split j by 2 -> (jo, ji)
}`)
  const told = (t: number) => diagnosticOf(() => void program.kernel().schedule('s', t).compilation.loops)
  expect(told(8)!.message).toMatch(/\(step 2: split j by 2 -> \(jo, ji\)\), where t = 8, u = 4$/)
  expect(told(0)!.message).toMatch(/\(step 1: split i by 0 -> \(io, ii\)\), where t = 0$/)
})

test('extents, widths, windows, ranges and divisors of formats', async () => {
  const program = await load(`format extents(e) over (i, j) {
  axis io = dense_fixed(e)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format widths(k) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_fixed(io, j, k)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format windows(s) over (i, j) {
  sort i by count(j by i) within s -> (place, at)
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (place[i], j)
  inverse (io, jo) -> (at[io], jo)
}
format blocks(b) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis ii = dense_fixed(io, b)
  axis jo = sparse_variable(ii, j)
  map (i, j) -> (i / b, i % b, j)
  inverse (io, ii, jo) -> (io * b + ii, jo)
}
format cut(c) over (i, j) {
  partition j into c {
    part widths(4)
  }
}
format outer(n) over (i, j) {
  part widths(n - 1)
}`)
  const said = (name: string, arg: number) => diagnosticOf(() => program.format(name, arg))?.message
  expect(said('extents', -1)).toMatch(/^axis io of extents\(-1\) has the extent e, which is -1/)
  expect(said('widths', 0)).toMatch(/^axis jo of widths\(0\) has the width k, which is 0/)
  expect(said('windows', 0)).toMatch(/^format windows sorts i within windows of s, which is 0/)
  expect(said('blocks', 0)).toMatch(/^format blocks divides by b, which is 0/)
  expect(said('cut', 0)).toMatch(/^cut partitions j into c, which is 0/)
  expect(said('outer', 1)).toMatch(/^axis jo of widths\(0\) has the width k, which is 0/)
  for (const [name, arg] of [
    ['widths', 1],
    ['windows', 1],
    ['blocks', 1],
    ['cut', 1],
    ['outer', 2],
  ] as const)
    expect(said(name, arg)).toBeUndefined()
})
