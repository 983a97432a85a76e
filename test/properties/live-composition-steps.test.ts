/** Steps that take formats of several parts: what is refused, as text and as data, and steps for each part. */
import { expect, test } from 'vitest'
import { printedSteps } from '../../src/api/kernels/nests.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import { compileCuda, noNvcc } from '../support/nvcc.ts'
import { refusal as diagnosticOf } from '../support/refusal.ts'
import { agreeOnAll } from './agree.ts'
import { compiled, KERNELS, MASKED, merged, PRODUCTS, property, TEXTS } from './composed-gen.ts'

const refused = (kernel: string, step: string) =>
  diagnosticOf(() =>
    parseProgram(`${TEXTS}\n${kernel}\nschedule product.s { ${step} }`).kernel().schedule('s'),
  )

test.each([
  [
    KERNELS.plain,
    'A as blocks(2, 2) where (density(2) >= 0.5) + panels(2, 2) live',
    'a condition depends on a count of stored coordinates',
  ],
  [
    KERNELS.plain,
    'A as blocks(2, 2) where (top(2 by i)) + panels(2, 2) live',
    'a condition depends on a rank by magnitude',
  ],
  [
    KERNELS.plain,
    'A as blocks(2, 2) where (value > 1) + panels(2, 2) live in place',
    'a condition depends on the value',
  ],
  [
    KERNELS.plain,
    'A as blocks(2, 2) where (find(L, i) > 1) + panels(2, 2) live',
    'the list L, which comes with the data',
  ],
  [KERNELS.plain, 'A as blocks(2, 2) where (held(S)) + panels(2, 2) live', 'held(S) of'],
  [
    KERNELS.plain,
    'A as blocks(2, 2) where (held(B)) + panels(2, 2) live',
    'the coordinates of i, q, and B is over [q, j]',
  ],
  [
    KERNELS.plain,
    'A as blocks(2, 2) where (held(M)) live in place',
    'does not cover every coordinate, and C of product may depend on the missing coordinates',
  ],
  [
    KERNELS.plain,
    'A as blocks(2, 2) where (held(M)) + panels(2, 2) live for mul',
    'where one part has all of it',
  ],
  [MASKED, 'A as blocks(2, 2) where (held(M) and i < j) live', 'does not cover every coordinate'],
  [
    KERNELS.plain
      .replace('A[i, q] * B', '(A[i, q] - 0.0) * B')
      .replace(
        'iterate mul',
        'iterate early [i, q] as SR { let x = q D[i] += A[i, q] * A[i, x] } iterate mul',
      )
      .replace('buffer B', 'buffer D: f32[i] out buffer B'),
    'A as blocks(2, 2) where (held(M)) + panels(2, 2) live in place',
    'is named by `let`',
  ],
  [
    KERNELS.written
      .replace('iterate which', 'iterate first [i, q] as SR { D[i] += A[i, q] } iterate which')
      .replace('buffer B', 'buffer D: f32[i] out buffer B'),
    'A as blocks(2, 2) where (held(M)) + panels(2, 2) live in place',
    'is read by first before which writes',
  ],
] as const)('$1 is rejected: $2', (kernel, step, why) => {
  const { code, message } = refused(kernel, step)
  expect(message).toContain(why)
  expect(code).toMatch(/^schedule\/live-(format|tensor)$/)
})

test.each([
  [
    'capacity (k, m, 3)',
    'blocks(2, 2) where (held(M)) + panels(2, 2) has 2 parts, and capacities for 3 are given',
  ],
  ['capacity (k, 2 - 3)', 'a capacity of -1 is below 0'],
  ['capacity (k, m / z)', 'z'],
] as const)('%s is rejected', (how, why) => {
  const { code, message } = refused(
    KERNELS.plain,
    `A as blocks(2, 2) where (held(M)) + panels(2, 2) live ${how}`,
  )
  expect([code, message]).toEqual([
    why === 'z' ? 'check/unknown-name' : 'schedule/live-capacity',
    expect.stringContaining(why),
  ])
})

test('steps for each part apply to its copies of iterations, and to its loops over lists', () =>
  property(5, async (s, choices) => {
    const how = choices.pick(['live', 'live in place'])
    const stepped = (steps: string) => compiled(s, `${how} ${steps}`)
    const rows = s.parts.every((f) => f !== 'rows_of') && s.kernel !== 'nest'
    const each = stepped(
      `each part of A as p { split mul.j by p.b -> (jl, jr) unroll p.jr ${rows ? 'split p.io by 2 -> (il, ir) bind p.il to block.x' : ''} }`,
    )
    const widths = new Map(Array.from(s.format.matchAll(/(\w+)\((\d+), /g), ([, f, n]) => [f, n]))
    const named = s.parts.map(
      (f) =>
        `split mul_${f}.j by ${widths.get(f)} -> (jl_${f}, jr_${f}) unroll jr_${f} ${rows ? `split mul_${f}.io_${f} by 2 -> (il_${f}, ir_${f}) bind il_${f} to block.x` : ''}`,
    )
    expect(each.loops).toEqual(stepped(named.join(' ')).loops)
    await agreeOnAll(each, s.inputs)
  }))

test('`merge parts` of a live format runs the consumers of its lists in one launch', () =>
  property(
    4,
    async (s, choices) => {
      const live = choices.pick(['live', 'live in place'])
      // How many groups there are of rows is not known before the run.
      const how = s.parts.includes('rows_of') ? 'atomic' : choices.pick(['atomic', 'combine'] as const)
      const one = compiled(s, `${live} ${merged(s, how)}`)
      const named = `merge (${s.parts.map((f) => `mul_${f}`).join(', ')})`
      expect(print2(one.loops)).toBe(print2(compiled(s, `${live} ${merged(s, how, named)}`).loops))
      const apart = compiled(s, `${live} ${merged(s, how, '')}`)
      const nests = ({ loops }: typeof one): number => loops.body.filter((x) => x.kind === 'for').length
      expect(nests(one)).toBe(nests(apart) + 1 - s.parts.length)
      await agreeOnAll(one, s.inputs)
    },
    PRODUCTS,
  ))

test.each([
  [
    'A as blocks(2, 2) where (held(M)) + panels(2, 2) live bind mul_blocks.io_blocks to block.x bind mul_panels.io_panels to block.x',
    'nests-meet',
    'both combine into C',
  ],
  [
    'A as panels(2, 2) live bind mul.io to block.x',
    'nothing-to-merge',
    'no two parts with separate loop nests',
  ],
  ['A as blocks(2, 2) where (held(M)) + panels(2, 2) live', 'not-on-blocks', 'no loop of mul_blocks'],
])('after %s parts are not merged', (steps, code, why) => {
  const found = refused(KERNELS.plain, `${steps} merge parts of A`)
  expect([found.code, found.message]).toEqual([`schedule/${code}`, expect.stringContaining(why)])
})

test('parts by their names', () => {
  const kernel = parseProgram(`${TEXTS}\n${KERNELS.plain}`).kernel()
  const parts = kernel.live('A', 'blocks(2, 3) where (held(M)) + panels(4, 2)', { inPlace: false }).parts('A')
  expect(parts.map((p) => [p.label, p.buffer, p.loop('io'), p.nest('mul'), p.constants.b])).toEqual([
    ['blocks', 'A_values_blocks', 'mul_blocks.io_blocks', 'mul_blocks', 2],
    ['panels', 'A_values_panels', 'mul_panels.io_panels', 'mul_panels', 4],
  ])
})

test('it is part of the step, in program text and JSON', () => {
  const format = 'blocks(2, b) where (held(M)) + panels(4, 2)'
  const text = `${TEXTS}\n${KERNELS.plain}\nschedule product.s(b = 3) { A as ${format} live capacity k }
schedule product.each(b = 3) { A as ${format} live capacity (b, m + k) in all }`
  const kernel = parseProgram(text).kernel()
  const plain = format.replace('b)', '3)')
  for (const [k, printed] of [
    [kernel.schedule('s'), `A as ${plain} live capacity k`],
    [kernel.live('A', plain), `A as ${plain} live in place`],
    [kernel.live('A', plain, { capacity: ['k / 2', 3] }), `A as ${plain} live in place capacity (k / 2, 3)`],
    [kernel.schedule('each'), `A as ${plain} live capacity (3, m + k) in all`],
  ] as const) {
    expect(printedSteps(k.compilation)).toEqual([printed])
    const again = kernel.replay(JSON.parse(JSON.stringify(k)))
    expect(again.show(1)).toBe(k.show(1))
  }
})

test.skipIf(noNvcc !== null)('nvcc compiles a kernel of two parts', () => {
  const step = 'A as blocks(16, 16) where (held(M)) + panels(64, 64) live'
  const k = parseProgram(`${TEXTS}\n${KERNELS.plain}\nschedule product.s { ${step} }`).kernel().schedule('s')
  expect(compileCuda(k.emit('cuda').map((t) => t.text))).toBe('')
})
