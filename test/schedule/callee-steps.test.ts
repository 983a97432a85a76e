/** Schedules of called kernels: names of members in text and in TypeScript, shared formats, errors in schedules of callees. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { resultOrError, SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { diagnosticOf } from '../support/refusal.ts'

const PROGRAM = `format csr over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
kernel project(n: size, d: size) {
  axis i = dense_fixed(n)
  axis k = dense_fixed(d)
  axis o = dense_fixed(d)
  buffer X: f32[i, k] in
  buffer W: f32[k, o] in
  buffer Y: f32[i, o] out
  iterate multiply [i, k, o] as SRS { Y[i, o] += X[i, k] * W[k, o] }
}
kernel aggregate(n: size, d: size) {
  axis i = dense_fixed(n)
  axis j = sparse_variable(i, n)
  axis k = dense_fixed(d)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer B: f32[jd, k] in
  buffer C: f32[i, k] out
  iterate sum [i, j, k] as SRS { C[i, k] += A[i, j] * B[j, k] }
}
kernel convolution(n: size, d: size) {
  axis v = dense_fixed(n)
  axis u = sparse_variable(v, n)
  axis p = dense_fixed(d)
  axis q = dense_fixed(d)
  buffer A: f32[v, u] in
  buffer H: f32[v, p] in
  buffer W: f32[p, q] in
  buffer O: f32[v, q] out
  call O = aggregate(A, project(H, W))
}
kernel layers(n: size, d: size) {
  axis v = dense_fixed(n)
  axis u = sparse_variable(v, n)
  axis p = dense_fixed(d)
  axis q = dense_fixed(d)
  buffer A: f32[v, u] in
  buffer H: f32[v, p] inout
  repeat 2 as l {
    buffer W: f32[p, q] in
    call H = convolution(A, H, W) as layer
  }
}
schedule project.rows(t = 4) { split i by t -> (io, ii); bind io to block.x; split k by 2 -> (ko, ki); cache_read X at ko in register -> row }
schedule aggregate.stored { A as csr; each part of A as p { split p.io by 2 -> (block, row) } ; split k by 4 -> (ko, lane); bind lane to thread.x }
schedule convolution.both(t) { use project.rows(t) at project; use aggregate.stored }
schedule layers.used { use convolution.both(8) }
schedule layers.required { use project.required at layer[2].project }
schedule project.required { require d % 4 == 0; split k by 4; unroll missing }
`
const WRITTEN = `A as csr
${[1, 2]
  .map(
    (k) => `split layer_${k}_project_multiply.i by 8 -> (io, ii)
bind layer_${k}_project_multiply.io to block.x
split layer_${k}_project_multiply.k by 2 -> (ko, ki)
cache_read H${k > 1 ? `_${k}` : ''} at layer_${k}_project_multiply.ko in register -> layer_${k}_project_row
split layer_${k}_aggregate_sum.io by 2 -> (block, row)
split layer_${k}_aggregate_sum.k by 4 -> (ko, lane)
bind layer_${k}_aggregate_sum.lane to thread.x`,
  )
  .join('\n')}`

test('a schedule of a callee equals its steps written out for each copy', () => {
  const kernel = parseProgram(`${PROGRAM} schedule layers.written { ${WRITTEN} }`).kernel('layers')
  const [used, written] = [kernel.schedule('used'), kernel.schedule('written')]
  for (const stage of [2, 3] as const) expect(used.show(stage)).toBe(written.show(stage))
  expect(used.emit('cuda')).toEqual(written.emit('cuda'))
  expect(used.trace.toSorted()).toEqual(written.trace.toSorted())
  for (const text of ['convolution.both', 'convolution.both at layer'])
    expect(kernel.schedule(text, 8).trace).toEqual(used.trace)
})

test('members of calls have names in text and in TypeScript', () => {
  const text = `${PROGRAM} schedule layers.named {
    layer[2].aggregate.A as csr
    split layer[2].project.multiply.i by 4 -> (a, b)
    bind layer[2].project.a to block.x, layer[1].project.i to block.x
    use halves(layer[1].aggregate.sum.k)
  }
  schedule halves(x: loop) { split x by 2 }`
  const kernel = parseProgram(text).kernel('layers')
  const named = kernel
    .as('layer[2].aggregate.A', 'csr')
    .split('layer[2].project.multiply.i', 4, ['a', 'b'])
    .bind({ 'layer[2].project.a': 'block.x', 'layer[1].project.i': 'block.x' })
    .split('layer[1].aggregate.sum.k', 2)
  expect(kernel.schedule('named').show(2)).toBe(named.show(2))
})

test('errors show the step of the callee, the use and the call', () => {
  const kernel = parseProgram(PROGRAM).kernel('layers')
  const { code, span, labels } = diagnosticOf(() => kernel.schedule('required'))!
  const at = (s?: { readonly start: number; readonly end: number }): string => PROGRAM.slice(s?.start, s?.end)
  expect([code, at(span)]).toEqual(['schedule/unknown-loop', 'unroll missing'])
  expect(labels?.map((l) => [l.text, at(l.span)])).toEqual([
    ['used here', 'use project.required at layer[2].project'],
    ['project is called here', 'project(H, W)'],
  ])
  const codes = ['layer[3].project.i', 'layer.project.i', 'layr[1].project.i', 'layer[1].project.mult.i'].map(
    (loop) => diagnosticOf(() => kernel.split(loop, 2))?.code,
  )
  expect(codes).toEqual([...Array(3).fill('schedule/unknown-call'), 'schedule/unknown-loop'])
})

test('the loops of a call are those of its loop nests', () => {
  const kernel = parseProgram(PROGRAM).kernel('layers')
  const said = (work: () => unknown) => {
    const { code, message, expected } = diagnosticOf(work)!
    return [code, message, expected]
  }
  for (const [loop, name] of [
    ['layer[1.5].project.i', 'layer[1'],
    ['layer[1.project.i', 'layer[1'],
    ['layer[01].project.i', 'layer[01]'],
    ['layer[].project.i', 'layer[]'],
    ['[1].project.i', '[1]'],
  ] as const)
    expect(said(() => kernel.split(loop, 2))).toEqual([
      'schedule/unknown-call',
      `${name} is not the name of a call`,
      'a label with whole numbers in brackets: layer[2][1]',
    ])
  expect(said(() => kernel.split('layer[2].k', 2))).toEqual([
    'schedule/ambiguous-loop',
    '2 loop nests of the call layer[2] have a loop k',
    'layer_2_project_multiply.k, layer_2_aggregate_sum.k',
  ])
  const twice = (steps: string, declared = '') =>
    said(() =>
      parseProgram(`${PROGRAM}${declared}\nschedule layers.s { ${steps} }`).kernel('layers').schedule('s'),
    )
  // The first use replaced the loop: that of another call is not meant.
  const use = 'use project.rows at layer[1].project'
  const [code, message] = twice(`${use}; ${use}`)
  expect([code, message]).toEqual([
    'schedule/consumed-loop',
    'i was split into io, ii by step 1 (step 5: split layer_1_project_multiply.i by 4 -> (io, ii)), where t = 4',
  ])
  expect(
    twice('use aggregate.wrong at layer[1].aggregate', 'schedule aggregate.wrong { split o by 2 }').slice(
      0,
      2,
    ),
  ).toEqual(['schedule/unknown-loop', 'no loop nest of the call aggregate has a loop o'])
})

test('formats with other arguments are not taken for one format, and a replaced loop of a loop nest is named', () => {
  const text = `${PROGRAM}
    format wide(w: size) over (i, j) {
      axis io = dense_fixed(i)
      axis jo = sparse_fixed(io, j, w)
      map (i, j) -> (i, j)
      inverse (io, jo) -> (io, jo)
    }
    schedule aggregate.wide(w) { A as wide(w) }
    schedule project.tiled { split multiply.i by 4 }`
  const traced = (steps: string) =>
    parseProgram(`${text} schedule layers.s { ${steps} }`).kernel('layers').schedule('s').trace
  const stored = (w: number, l: number) => `use aggregate.wide(${w}) at layer[${l}].aggregate`
  expect(traced(`${stored(4, 1)}; ${stored(4, 2)}`)).toEqual(['A as wide(4)'])
  expect(traced(`${stored(4, 1)}; ${stored(5, 2)}`)).toEqual(['A as wide(4)', 'A as wide(5)'])
  const tiled = 'use project.tiled at layer[1].project'
  expect(diagnosticOf(() => traced(`${tiled}; ${tiled}`))).toMatchObject({
    code: 'schedule/consumed-loop',
    message: expect.stringContaining('i was split into io, ii by step 1'),
  })
})

test('each point of a space has the steps of the schedules of callees that it uses', async () => {
  const text = `${PROGRAM} schedule layers.space(least = 2) choose by search {
    t in 1, 2 .. 8 where (t >= least)
    use convolution.both(t) at layer[1] or project.rows(t = t) or project.rows(t) at layer.project
    either { use aggregate.stored at layer[2].aggregate where (t >= 4) } or { use later(t) }
  }
  schedule layers.later(t) { use project.rows(t = 2 * t) at layer[2].project }
  schedule layers.again(t) choose by search { use space(least = t) }`
  const program = parseProgram(text)
  const sizes = { n: 64, d: 8 }
  const traceOf = (steps: string) =>
    parseProgram(`${text} schedule layers.s { ${steps} }`).kernel('layers').schedule('s').trace
  for (const [name, prefix] of [
    ['space', ''],
    ['again', 'space.'],
  ] as const) {
    const space = await program.kernel('layers').space(name, 2).bind('cpu', sizes)
    const walk = (point: Readonly<Record<string, string | number>>): readonly (typeof point)[] => {
      const open = space.next(point)
      return open ? open.values.flatMap((v) => walk({ ...point, [open.name]: v })) : [point]
    }
    const points = walk({})
    expect(points).toHaveLength(3 * (2 + 3))
    for (const point of points) {
      const given = (name: string): string =>
        `${point[prefix + name]}`.replace(/\bt\)/, `${point[`${prefix}t`]})`)
      const group = given('either').replace(/^\{|where .*|\}$/g, '')
      const steps = `use ${given('use')}; ${group}`
      const made = resultOrError(() => traceOf(steps))
      const applied = resultOrError(() => space.kernel(point).trace)
      if (made instanceof SptError)
        expect(applied).toMatchObject({ diagnostics: [{ code: made.diagnostics[0]!.code }] })
      else expect(applied).toEqual(made)
      expect(space.call(point)).toBe(null)
    }
  }
  const wrong = (steps: string) =>
    diagnosticOf(
      () =>
        parseProgram(`${text} schedule layers.w choose by search { ${steps} }`).kernel('layers').schedules,
    )
  expect(wrong('use project.wide(2) at layer[1].project')?.code).toBe('check/unknown-schedule')
  expect(wrong('use project.rows(2) at layer[1]')?.code).toBe('schedule/callee')
  expect(wrong('use project.rows(x = 2)')?.code).toBe('check/unknown-parameter')
})

test('repetitions are numbered from 1', () => {
  const {
    span: _span,
    labels: _labels,
    ...below
  } = diagnosticOf(() =>
    parseProgram(`${PROGRAM} schedule layers.s { use project.rows at layer[-1].project }`)
      .kernel('layers')
      .schedule('s'),
  )!
  expect(below).toEqual({
    code: 'schedule/unknown-call',
    message: 'there is no call layer[-1]',
    expected: 'layer[1] to layer[2]',
    hint: 'write `layer[1]` for the first repetition: repetitions are numbered from 1',
  })
  const kernel = parseProgram(PROGRAM).kernel('layers')
  for (const step of ['split layer[-2].project.i by 4', 'split layer[0].project.i by 4'])
    expect(
      diagnosticOf(() =>
        parseProgram(`${PROGRAM} schedule layers.s { ${step} }`).kernel('layers').schedule('s'),
      ),
    ).toMatchObject({ code: 'schedule/unknown-call', hint: below.hint })
  expect(diagnosticOf(() => kernel.split('layer[3].project.i', 4))?.hint).toBe(undefined)
})

test('copies of the arrays of axes belong to the call', () => {
  const text = `kernel mark(n: size, d: size) {
    axis i = sparse_variable(n)
    axis k = dense_fixed(d)
    axis c = dense_fixed(n)
    buffer x: f32[i] in
    buffer y: f32[k, c] out
    iterate each [k, i] as SS { y[k, i] = 1.0 }
  }
  kernel marks(n: size, d: size) {
    axis v = sparse_variable(n)
    axis q = dense_fixed(d)
    axis w = dense_fixed(n)
    buffer x: f32[v] in
    buffer a: f32[q, w] out
    buffer b: f32[q, w] out
    call a = mark(x) as first
    call b = mark(x) as second
  }
  schedule mark.copied {
    reorder (i, k)
    split i by 4 -> (io, ii)
    cache_read i_indices at io in shared
    split i_indices_shared.ii by 2 -> (s, t)
  }
  schedule marks.copied { use mark.copied at second }`
  const { trace } = parseProgram(text).kernel('marks').schedule('copied')
  expect(trace.slice(2)).toEqual([
    'cache_read v_indices at second_each.io in shared',
    'split v_indices_shared.ii by 2 -> (s, t)',
  ])
})
