/** What tuning gives is what was measured, when it is compiled and when its text is read back. */

import { readFileSync } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import { buildDefault } from '../../src/api/built/build.ts'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { Call } from '../../src/cli/arguments/command.ts'
import { outFile } from '../../src/cli/run/out-file.ts'
import { parseFile } from '../../src/cli/scheduled-kernel.ts'
import { coords, load } from '../../src/node.ts'
import { typescriptText } from '../../src/search/text.ts'
import { withExplicitSteps } from '../../src/search/tune/alternatives.ts'
import { finalText, tiedWithFastest } from '../../src/search/tune/finals/final-text.ts'
import type { Confirmation } from '../../src/search/tune/finals/finals.ts'
import { tune } from '../../src/search/tune/index.ts'
import { Folder, spt } from '../cli/support.ts'
import { PRODUCT } from '../support/product.ts'
import { simulatedDevice } from '../support/simulated-device.ts'

const folder = new Folder()
afterAll(() => folder.remove())
const device = await simulatedDevice()

const A = coords(
  [6, 5],
  [
    [0, 1, 1, 4],
    [2, 0, 3, 4],
  ],
  [1, 2, 3, 4],
)
const inputs = { tensors: { A }, params: { d: 8 }, seed: 1 }
const SPACE = `schedule product.all choose by search { either { } or { split f by 2 -> (fo, fi) } or { A as bsr(2) } }\n`
const FORMATS = 'import { bsr } from "sparsetile/kernels/formats.spt"\n'
const AUTO =
  'schedule product.auto choose { otherwise gpu }\nschedule product.gpu { split f by 4 -> (fo, fi) }\n'

async function finals(text: string) {
  const kernel = (await load(text)).kernel('product')
  const space = await kernel.space('all').bind(device, ...flatInputs(inputs))
  return { kernel, space, ...(await tune(kernel, { space, inputs, device, strategy: 'exhaustive' })) }
}

describe.each([
  ['nothing is chosen', ''],
  ['a choice is', AUTO],
])('with default %s', (_, more) => {
  const text = `${FORMATS}${PRODUCT}${SPACE}${more}`

  test('each finalist compiles to the steps with which it was measured', async () => {
    const found = await finals(text)
    expect(found.finalists.map((f) => f.outcome.status)).toEqual(found.finalists.map(() => 'measured'))
    for (const { kernel, point } of found.finalists) {
      if (point) expect(kernel.trace).toEqual(withExplicitSteps(found.space.kernel(point)).trace)
      expect(kernel.dispatch).toBe(null)
      expect((await buildDefault(kernel, device)).kernel.trace).toEqual(kernel.trace)
    }
    const unasked = found.kernel.dispatch
      ? ['split f by 4 -> (fo, fi)']
      : found.kernel.autoSchedule('cpu').trace
    expect(unasked.length).toBeGreaterThan(0)
    expect(found.defaultSchedule.kernel.trace).toEqual(unasked)
  })

  test('the text of each is a file with its imports', async () => {
    const found = await finals(text)
    const path = folder.file('product.spt', text)
    const io = { env: {} } as never
    const parsed = await parseFile(path, new Call('tune', [path], new Map(), io))
    for (const [k, final] of found.finalists.entries()) {
      const out = folder.file(
        `out/f${k}.spt`,
        outFile(parsed, 'product', finalText(final), folder.at(`out/f${k}.spt`)),
      )
      expect(readFileSync(out, 'utf8')).toContain('from "../product.spt"')
      const again = (await load(out)).kernel()
      expect(again.schedule('tuned').trace).toEqual(final.kernel.trace)
      const { code, err } = await spt(['check', out])
      expect([code, err]).toEqual([0, ''])
      // The TypeScript of it, where the program has its formats.
      const program = await load(out)
      const kernel = program.kernel()
      const replayed = new Function('kernel', `return ${typescriptText(final.kernel)}`)(kernel)
      expect(replayed.trace).toEqual(final.kernel.trace)
    }
  })
})

test('a schedule file contains what its program renames, shadows and declares for kernels of others', async () => {
  folder.file('lib/mine.spt', `${PRODUCT}`)
  folder.file(
    'lib/more.spt',
    'import { product } from "./mine.spt"\nschedule product.halves(by = 2) { split f by by -> (fo, fi) }\n',
  )
  folder.file(
    'lib/own.spt',
    'format csr over (i, j) { axis io = dense_fixed(i) axis jo = sparse_variable(io, j) map (i, j) -> (i, j) inverse (io, jo) -> (io, jo) }\n',
  )
  const path = folder.file(
    'lib/main.spt',
    `import "sparsetile/kernels/formats.spt"
import { csr } from "./own.spt"
import { bsr as blocks } from "sparsetile/kernels/formats.spt"
import { product } from "./mine.spt"
import "./more.spt"
schedule product.thirds { use halves(3) }
`,
  )
  const parsed = await parseFile(path, new Call('tune', [path], new Map(), { env: {} } as never))
  const out = folder.at('elsewhere/deep/fast.spt')
  const schedules = `schedule product.tuned_1 {
  A as csr
}

schedule product.tuned choose {
  when (d < 4) thirds
  when (d < 8) halves(2)
  when (d < 16) tuned_1
  otherwise tuned_2
}
schedule product.tuned_2 { A as blocks(2) }
`
  folder.file('elsewhere/deep/fast.spt', outFile(parsed, 'product', schedules, out))
  const program = await load(out)
  expect(program.kernels).toEqual(['product'])
  const kernel = program.kernel()
  expect(kernel.schedule('thirds').trace).toEqual(['split f by 3 -> (fo, fi)'])
  for (const [d, schedule] of [
    [2, 'thirds'],
    [6, 'halves(2)'],
    [9, 'tuned_1'],
    [20, 'tuned_2'],
  ] as const)
    expect((await kernel.schedule('tuned').choose('cpu', { d })).selection.text).toBe(schedule)
  expect(program.formats.get('csr')).toBeDefined()
})

test('only the default is compared by the confirmation of the fastest', () => {
  const final = (name: string, median: number) => ({
    name,
    outcome: {
      status: 'measured',
      timing: { median, interval: [median - 0.1, median + 0.1], samples: [median] },
    } as const,
  })
  const finals = [final('fast', 1), final('near', 1.05), final('far', 2), final('default', 1.1)]
  const tied = (verdict: Confirmation['verdict']) =>
    [...tiedWithFastest(finals, { name: 'fast', verdict } as Confirmation)].map((f) => f.name)
  expect(tied('faster')).toEqual(['near'])
  expect(tied('not distinguishable')).toEqual(['near', 'default'])
})
