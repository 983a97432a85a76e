/** `spt tune`: the fastest schedule of a kernel on a matrix, kept, gone on with, written as a schedule that reads back. */
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { Call } from '../../src/cli/arguments/command.ts'
import { outFile } from '../../src/cli/run/out-file.ts'
import { parseFile } from '../../src/cli/scheduled-kernel.ts'
import { writeTable } from '../../src/cli/tune/generalise-option.ts'
import { tuneText } from '../../src/cli/tune/tune-report.ts'
import { defaultKeptText, tuneAllReport } from '../../src/cli/tune/tune-several.ts'
import { trialText } from '../../src/cli/tune/tune-worker.ts'
import { lastSchedule, writeWrongResults } from '../../src/cli/tune/tuning.ts'
import { load } from '../../src/node.ts'
import type { Outcome } from '../../src/search/types.ts'
import { sample } from '../support/cases.ts'
import { Folder, MATRIX, PROGRAM, spt } from './support.ts'

const folder = new Folder()
afterAll(() => folder.remove())

const program = folder.file(
  'mul.spt',
  `${PROGRAM}
schedule mul.cpu_space choose by search {
  by in 1, 2, 4, 8 where (by != 1)
  either { split f by by -> (fo, fi) } or { split nowhere by by -> (a, b) }
}
`,
)
const data = [
  '--bind',
  `A=${folder.file('a.mtx', MATRIX)}`,
  '--size',
  'd=8',
  '--size',
  'alpha=2',
  '--seed',
  '5',
]

test('minutes may be fractional', async () => {
  const ended = await spt([
    'tune',
    program,
    ...data,
    '--minutes',
    '0.5',
    '--trials',
    '1',
    '--json',
    '--strategy',
    'random',
  ])
  expect([ended.code, JSON.parse(ended.out).trials.length]).toEqual([0, 1])
  for (const none of ['0', '-0.5', '1e5', '.', '20000'])
    expect((await spt(['tune', program, ...data, '--minutes', none])).err).toContain(
      'a number from 0.01 to 10080',
    )
})

test('without a terminal, prints a line per batch of trials and one for the final comparison', async () => {
  const { code, err } = await spt(['tune', program, ...data, '--trials', '3'], { progressLines: true })
  expect(code).toBe(0)
  const lines = err.trimEnd().split('\n')
  expect(lines.filter((l) => /^0 done, /.test(l))).toHaveLength(1)
  expect(lines.filter((l) => /^3 done, best [\d.]+ ms, /.test(l) && !l.includes('comparing'))).toHaveLength(1)
  expect(lines.filter((l) => l.includes('comparing'))).toHaveLength(1)
  expect(err).not.toContain('\r')
})

test('finds a schedule, writes it, records trials and resumes', async () => {
  const db = folder.at('r.db')
  const out = folder.at('fast.spt')
  const first = await spt([
    'tune',
    program,
    ...data,
    '--trials',
    '4',
    '--db',
    db,
    '--json',
    '--strategy',
    'exhaustive',
  ])
  expect([first.code, first.err]).toEqual([0, ''])
  const found = JSON.parse(first.out)
  expect(found.trials).toHaveLength(4)
  const times: number[] = found.finalists.flatMap(
    (f: { name: string; outcome: { timing?: { median: number } } }) =>
      f.name.startsWith('point 1') && f.outcome.timing ? [f.outcome.timing.median] : [],
  )
  expect(times).toEqual(times.toSorted((a, b) => a - b))
  expect(found.finalists.map((f: { name: string }) => f.name)).toEqual(
    expect.arrayContaining(['point 1', 'default', 'A dense']),
  )
  const again = await spt([
    'tune',
    program,
    ...data,
    '--trials',
    '4',
    '--db',
    db,
    '--resume',
    '--json',
    '--out',
    out,
    '--strategy',
    'exhaustive',
  ])
  const whole = JSON.parse(again.out)
  // Three points of each group: half of them are refused.
  expect([whole.knownTrials, whole.trials.length, whole.stopReason, whole.rejectedByCode]).toEqual([
    4,
    6,
    'exhausted',
    { 'schedule/unknown-loop': 3 },
  ])
  expect(readFileSync(out, 'utf8')).toContain(whole.best.text)
  const kernel = (await load(out)).kernel()
  expect(kernel.schedule('tuned').trace).toEqual(whole.best.steps)
  const ran = await spt(['run', out, ...data, '--schedule', 'tuned', '--verify'])
  expect([ran.code, ran.err]).toEqual([0, ''])
})

test('prints the result although the default schedule is rejected', async () => {
  const space = 'schedule mul.cpu_space choose by search { by in 2, 4 split f by by -> (fo, fi) }'
  const usual = folder.file(
    'usual.spt',
    `${PROGRAM}\n${space}\nschedule mul.cpu(w) { split f by w -> (fo, fi) }`,
  )
  const choice = folder.file(
    'choice.spt',
    `${PROGRAM}\n${space}\nschedule mul.five { require d % 5 == 0 }\nschedule mul.auto choose { otherwise five }`,
  )
  const told = async (file: string, ...more: string[]) => {
    const { code, out } = await spt(['tune', file, ...data, ...more, '--strategy', 'exhaustive', '--json'])
    return { code, ...JSON.parse(out) }
  }
  // As a run does, it takes the kernel without a schedule that is refused.
  const first = await told(usual)
  expect([first.code, first.defaultSchedule.schedule, first.defaultSchedule.outcome.status]).toEqual([
    0,
    null,
    'measured',
  ])
  const second = await told(choice)
  expect([second.code, second.defaultSchedule.schedule, second.defaultSchedule.outcome.code]).toEqual([
    0,
    'auto',
    'choose/requirement',
  ])
  const both = await told(choice, '--size', 'd=4')
  expect([
    both.code,
    both.verdict,
    both.cases.map((c: { defaultSchedule: unknown }) => c.defaultSchedule),
  ]).toEqual([0, 'single', [null, null]])
})

test('prints a summary of the search', async () => {
  const { code, out } = await spt(['tune', program, ...data, '--trials', '2'])
  expect(code).toBe(0)
  for (const part of [
    'kernel    mul on',
    'space     mul.cpu_space',
    'default',
    'schedule mul.tuned {',
    '// TypeScript',
  ])
    expect(out).toContain(part)
})

const several = ['--size', 'alpha=2', '--seed', '5', '--strategy', 'exhaustive']
const graphs = ['one', 'two', 'three'].map((name, k) =>
  folder.file(
    `graphs/${name}.mtx`,
    `%%MatrixMarket matrix coordinate real general\n${k + 2} 4 ${k + 2}\n${Array.from({ length: k + 2 }, (_, i) => `${i + 1} ${k + 1} 2\n`).join('')}`,
  ),
)

test('several files and sizes: every candidate on each input, and output that parses', async () => {
  folder.file('graphs/other.txt', 'no matrix')
  const out = folder.at('all.spt')
  const db = folder.at('all.db')
  const argv = ['tune', program, '--bind', `A=${folder.at('graphs/*.mtx')}`, '--size', 'd=4', '--size', 'd=8']
  const { code, out: json, err } = await spt([...argv, ...several, '--json', '--out', out, '--db', db])
  expect([code, err]).toEqual([0, ''])
  const found = JSON.parse(json)
  const names = ['one', 'three', 'two'].flatMap((n) => [`${n} d=4`, `${n} d=8`])
  expect(found.cases.map((c: { name: string }) => c.name)).toEqual(names)
  expect([...new Set(found.cases.map((c: { group: string }) => c.group))]).toEqual(['one', 'three', 'two'])
  for (const { timings, foundOn } of found.candidates) {
    expect(timings.every((t: unknown) => t !== null)).toBe(true)
    expect(foundOn === null || foundOn.every((g: string) => ['one', 'two', 'three'].includes(g))).toBe(true)
  }
  const text = readFileSync(out, 'utf8')
  const kernel = (await load(out)).kernel()
  if (found.verdict === 'default') expect(text).toMatch(/is unchanged\.\n$/)
  else {
    expect(text.endsWith(found.schedule.text)).toBe(true)
    expect([...kernel.schedules, ...kernel.dispatches]).toContain(found.schedule.name)
  }

  const again = [...argv, ...several, '--db', db, '--resume']
  const { out: report, err: progress } = await spt(again, { progressLines: true })
  expect(progress).toMatch(/^one d=4 \(1 of 6\): \d/m)
  for (const part of [
    'cases     6;',
    'default',
    'single',
    'dispatch',
    'time / best',
    'held out',
    'three d=8',
  ])
    expect(report).toContain(part)
  expect(report).toMatch(/schedule mul\.tuned|is unchanged/)
})

test('writes no schedule if the default is fastest', async () => {
  folder.file('base.spt', PROGRAM)
  const path = folder.file(
    'chosen.spt',
    'import "./base.spt"\nschedule mul.tiled { split f by 2 }\nschedule mul.auto choose { otherwise tiled }\n',
  )
  const own = (await load(path)).kernel()
  const tiled = own.schedule('tiled')
  const taken = { kernel: tiled, call: { name: 'tiled', args: [] }, tunedOn: ['a'], timings: [] }
  const result = {
    cases: [
      { name: 'a', defaultSchedule: 0, best: 0, single: 0, dispatch: 0, search: null, rejection: null },
    ],
    candidates: [{ ...taken, timings: [{ median: 1 }] }],
    generalisation: { single: {}, dispatch: {} },
    verdict: 'default',
    defaultLoss: null,
    schedule: null,
    wrong: [],
    seconds: 1,
  } as never
  const said = defaultKeptText(own, result)
  expect(tuneAllReport(own, 'cpu', result).endsWith(`\n\n${said}`)).toBe(true)
  const parsed = await parseFile(path, new Call('tune', [path], new Map(), { env: {} } as never))
  const left = folder.file('left.spt', outFile(parsed, 'mul', said, folder.at('left.spt')))
  const again = (await load(left)).kernel()
  expect([again.dispatch, again.schedules]).toEqual(['auto', own.schedules])
})

test('a schedule of an instance is read back with the kernel that the file imports', async () => {
  const path = folder.file(
    'typed.spt',
    `kernel scale<T: f32 or f16>(m: size) {
       axis i = dense_fixed(m)
       buffer x: T[i] in
       buffer y: T[i] out
       iterate body [i] as S { y[i] = x[i] }
     }`,
  )
  const typed = await parseFile(path, new Call('tune', [path], new Map(), { env: {} } as never))
  const renamed = folder.file('renamed.spt', 'import { scale as copy } from "./typed.spt"')
  const copy = await parseFile(renamed, new Call('tune', [renamed], new Map(), { env: {} } as never))
  for (const [name, parsed] of [
    ['scale<f16>', typed],
    ['scale', typed],
    ['copy<f16>', copy],
  ] as const) {
    const schedule = `schedule ${name}.found {\n  unroll i by 4\n}\n`
    const written = folder.file('found.spt', outFile(parsed, name, schedule, folder.at('found.spt')))
    expect((await load(written)).kernel(name).schedules).toEqual(['found'])
  }
})

test('files are unchanged without a result', async () => {
  const [out, html] = [folder.file('good.spt', '// good'), folder.file('good.html', 'good')]
  // As Ctrl-C before the first trial.
  const progress = (): void => process.listeners('SIGINT').at(-1)!('SIGINT')
  const argv = ['tune', program, ...data, '--trials', '3', '--out', out, '--html', html]
  const first = process.listeners('SIGINT').length
  const ended = await spt(argv, {
    progress: (line) => void (process.listeners('SIGINT').length > first && line && progress()),
  })
  expect(ended.out).toContain('The search was interrupted before the first trial.')
  expect([ended.code, readFileSync(out, 'utf8'), readFileSync(html, 'utf8')]).toEqual([1, '// good', 'good'])
})

test('writes a self-contained file, and creates folders', async () => {
  const alone = folder.at('alone.spt')
  const argv = ['tune', program, ...data, '--trials', '1', '--strategy', 'random', '--out', alone, '--whole']
  const made = ['--db', folder.at('new/folders/r.db'), '--bugs', folder.at('new/bugs')]
  const { code, err } = await spt([...argv, ...made])
  expect([code, err]).toEqual([0, ''])
  expect([existsSync(folder.at('new/folders/r.db')), existsSync(folder.at('new/bugs'))]).toEqual([
    true,
    false,
  ])
  expect(readFileSync(alone, 'utf8')).not.toMatch(/from "\.|import "\./)
  expect((await load(alone)).kernel().schedules).toContain('tuned')
  const importing = folder.file('importing.spt', 'import "./mul.spt"\n')
  const several = await spt(['tune', importing, '--kernel', 'mul', ...data, '--out', alone, '--whole'])
  expect([several.code, several.err]).toEqual([
    2,
    expect.stringContaining('--whole takes a program of a single file'),
  ])
})

test('a line of a worker’s log states the result of the trial', () => {
  const timing = { median: 1.23456, interval: null, samples: [1] }
  const line = (outcome: Outcome, duration?: number) => trialText('mul', { by: 2 }, { outcome, duration })
  expect(line({ status: 'measured', timing }, 1500)).toBe('mul {"by":2}: 1.235 ms, took 1.5 s')
  expect(line({ status: 'bounded', atMost: 900 })).toBe('mul {"by":2}: at most 900 ms')
  expect(line({ status: 'failed', code: 'device/lost', message: '' })).toBe(
    'mul {"by":2}: failed device/lost',
  )
  expect(line({ status: 'wrong', message: '' })).toBe('mul {"by":2}: wrong')
})

test('a dangling link is reported with its target', async () => {
  const link = folder.at('link.db')
  symlinkSync(folder.at('no-such-folder/r.db'), link)
  const { code, err } = await spt(['tune', program, ...data, '--trials', '1', '--db', link])
  expect([code, err]).toEqual([1, expect.stringMatching(/records\/missing-folder.*no-such-folder' does not/)])
  const made = folder.at('made.db')
  symlinkSync('linked.db', made)
  expect((await spt(['tune', program, ...data, '--trials', '1', '--db', made])).code).toBe(0)
  expect(existsSync(folder.at('linked.db'))).toBe(true)
})

test('reports its state if it ends without a result', async () => {
  const own = (await load(program)).kernel()
  const ended = { status: 'failed', code: 'search/ended', message: 'x' }
  const none = {
    rejectedByCode: {},
    failed: 0,
    wrong: [],
    seconds: 1,
    knownTrials: 0,
    libraries: { trials: [], absent: [] },
  }
  const text = (stopReason: string): string =>
    tuneText(own, 'cpu', 's', {
      ...none,
      stopReason,
      trials: [],
      best: null,
      finalists: [{ name: 'default', outcome: ended }],
    } as never)
  expect(text('aborted')).toMatch(
    /ended after 1\.0 s: interrupted\n\nThe search was interrupted before the first trial\.\n$/,
  )
  expect(text('seconds')).toContain('The time limit was reached before the first trial')
  expect(text('seconds')).toContain(
    'the time limit was reached before the first trial, by conversion, prediction and compilation',
  )
  const timing = (median: number) => ({
    status: 'measured',
    timing: { median, interval: null, samples: [median] },
  })
  const finals = [
    { name: 'point 1', outcome: timing(2), point: { by: 2 }, kernel: own },
    { name: 'default', outcome: ended, point: null, kernel: own },
    { name: 'unscheduled', outcome: timing(1), point: null, kernel: own },
  ]
  const [, , fastest] = finals
  const won = {
    ...none,
    stopReason: 'trials',
    trials: [],
    finalists: finals,
    best: fastest,
    bestSchedule: fastest,
  }
  expect(tuneText(own, 'cpu', 's', won as never)).toMatch(
    /^unscheduled +1 ms +\(one sample\) {2}the lowest median\npoint 1 +2 ms +\(one sample\) {2}not distinguishable from it\ndefault +search\/ended\n\n\/\/ The schedule with the lowest median: unscheduled$/m,
  )
  // The fastest of the search against the default, which is kept where they are not distinguishable.
  const apart = (median: number) => ({
    status: 'measured',
    timing: { median, interval: [median, median], samples: [median] },
  })
  const two = [
    { name: 'point 1', outcome: apart(1), point: { by: 2 }, kernel: own },
    { name: 'default', schedule: 'cpu(16)', outcome: apart(2), point: null, kernel: own },
  ]
  const against = {
    name: 'point 1',
    ratio: 0.98,
    interval: [0.91, 1.05],
    rounds: 16,
    verdict: 'not distinguishable',
  }
  const judged = (of: (typeof two)[number], confirmation: object): string =>
    tuneText(own, 'cpu', 's', { ...won, finalists: two, best: of, bestSchedule: of, confirmation } as never)
  const kept = judged(two[1]!, against)
  expect(kept).toContain('default: cpu(16)  2 ms  (2 ms to 2 ms)  not distinguishable from it')
  expect(kept).toContain(
    'point 1 takes 0.98 (0.91 to 1.05) times the time of the default, in 16 fresh preparations: not',
  )
  expect(kept).toContain(
    '// No schedule is distinguishable from the default, which is kept: default: cpu(16) (point 1: 0.98 (0.91 to 1.05) times its time)',
  )
  const better = judged(two[0]!, { ...against, interval: [0.91, 0.99], verdict: 'faster' })
  expect(better).toContain(
    '// The fastest schedule: point 1, 0.98 (0.91 to 0.99) times the time of the default',
  )
  expect(better).not.toContain('not distinguishable')
  const trials = [4, 3].map((ms, k) => ({ point: { by: k, F: 'csr' }, outcome: timing(ms) }))
  const cases = [
    { name: 'one', search: { ...none, trials }, rejection: null, values: null },
    { name: 'two', search: null, rejection: null, values: null },
  ]
  const all = {
    ...none,
    cases,
    candidates: [{}, {}],
    generalisation: null,
    defaultLoss: null,
    verdict: null,
    schedule: null,
  }
  const said = tuneAllReport(own, 'cpu', all as never)
  // On each they were not tried.
  expect(said).toMatch(/^cases +2; 2 trials; after 1\.0 s$/m)
  const onOne = { ...all, cases: [{ ...cases[0], values: {} }, cases[1]] }
  expect(tuneAllReport(own, 'cpu', onOne as never)).toMatch(
    /^cases +2; 2 trials, then 2 candidates on 1 of the cases; after 1\.0 s$/m,
  )
  expect(said).toMatch(/^one +2 +3 ms +by = 1, F = csr\ntwo +0 +none\n\nTuning ended before all/m)
})

test('several files: ambiguous and missing ones are rejected', async () => {
  const said = async (...argv: string[]): Promise<string> =>
    (await spt(['tune', program, ...several, '--trials', '1', ...argv])).err
  const [a, b] = graphs.map((g) => `A=${g}`)
  expect(await said('--size', 'd=4', '--bind', a!, '--bind', a!)).toContain('is given twice')
  expect(await said('--size', 'd=4', '--size', 'd=4', '--bind', a!)).toContain('--size d=4 is given twice')
  expect(await said('--size', 'd=4', '--bind', `A=${folder.at('graphs/x*.mtx')}`)).toContain(
    'no file is called so',
  )
  expect(await said('--size', 'd=4', '--bind', `A=${folder.at('none/*.mtx')}`)).toContain('io/not-found')
  expect(await said('--bind', a!, '--bind', b!, '--bind', 'B=x.npy', '--bind', 'B=y.npy')).toContain(
    'A and B have several files',
  )
  // A file that is no matrix is left out.
  const bad = `A=${folder.file('graphs/bad.mtx', 'no matrix')}`
  expect(await said('--size', 'd=4', '--bind', a!, '--bind', b!, '--bind', bad)).toMatch(
    /^warning: bad is left out: .*\[io\/.*\]\n$/,
  )
  expect(await said('--size', 'd=4', '--bind', bad, '--bind', `A=${folder.at('none.mtx')}`)).toContain(
    'error[io/',
  )
})

test('writes a report, with the random seed', async () => {
  const html = folder.at('report.html')
  const { code, out, err } = await spt(['tune', program, ...data, '--trials', '3', '--html', html])
  expect(out).toContain(`Report written to ${html}`)
  expect([code, err]).toEqual([0, ''])
  const text = readFileSync(html, 'utf8')
  for (const part of [
    '<h1>mul tuned on',
    'Best so far, by seconds',
    'Roofline',
    'schedule',
    'Stored tensors',
  ])
    expect(text).toContain(part)
  expect(text).not.toMatch(/<script|\b(?:src|href)=/i)
  const random = folder.at('random.html')
  const sizes = ['m=6', 'n=5', 'd=4', 'alpha=1'].flatMap((x) => ['--size', x])
  expect((await spt(['tune', program, ...sizes, '--trials', '2', '--html', random])).code).toBe(0)
  expect(readFileSync(random, 'utf8')).toContain('6 × 5')
})

test('an unwritable report is rejected before measuring', async () => {
  const db = folder.at('none.db')
  const { code, err } = await spt(['tune', program, ...data, '--db', db, '--html', folder.at('no/r.html')])
  expect([code, err]).toEqual([1, expect.stringContaining('io/not-found')])
  expect(existsSync(db)).toBe(false)
})

test('impossible options are rejected', async () => {
  const codeOf = async (...more: string[]): Promise<string> =>
    (await spt(['tune', program, ...data, ...more])).err
  expect(await codeOf('--trials', '0')).toContain('--trials 0 is not possible')
  expect(await codeOf('--strategy', 'evolutonary')).toContain('search/strategy')
  expect(await codeOf('--space', 'gpu')).toContain('api/unknown-space')
  expect(await codeOf('--bind', 'Z=nothing.mtx')).toContain('error')
  const empty = folder.file(
    'empty.spt',
    `${PROGRAM}\nschedule mul.cpu_space choose by search { by in 1, 2 where (d < by) split f by by }\n`,
  )
  expect((await spt(['tune', empty, ...data])).err).toContain('space/empty')
  expect(existsSync('spt-bug-mul-1.json')).toBe(false)
  expect(await codeOf('--space', 'sketches(4)')).toContain('sketches take no arguments')
  expect(await codeOf('--space', 'cpu_space(4)')).toContain('space cpu_space is given 1 argument')
  expect(await codeOf('--space', 'cpu_space(n = 4)')).toContain('space cpu_space has no parameter n')
  expect(await codeOf('--out', folder.at('x.ts'))).toContain('is not the name of a program')
})

test('imported files are not overwritten, and an output that could not import them is rejected', async () => {
  const text = readFileSync(program, 'utf8')
  const user = folder.file('user.spt', 'import "./mul.spt"\nschedule mul.more { reorder (i, f, j) }\n')
  const db = folder.at('over.db')
  const over = await spt(['tune', user, '--kernel', 'mul', ...data, '--out', program, '--db', db])
  expect([over.code, over.err]).toEqual([2, expect.stringContaining('would overwrite')])
  const odd = folder.file('we"ird/mul.spt', PROGRAM)
  const quoted = await spt(['tune', odd, ...data, '--out', folder.at('quoted.spt'), '--db', db])
  expect([quoted.code, quoted.err]).toEqual([2, expect.stringContaining('no program can import')])
  expect([existsSync(db), readFileSync(program, 'utf8')]).toEqual([false, text])
})

test("resumes from the user's records by default", async () => {
  const env = { SPT_CACHE_DIR: folder.at('cache') }
  const tuned = async (): Promise<{ readonly knownTrials: number; readonly trials: readonly unknown[] }> =>
    JSON.parse((await spt(['tune', program, ...data, '--trials', '2', '--resume', '--json'], { env })).out)
  expect([(await tuned()).knownTrials, (await tuned()).knownTrials]).toEqual([0, 2])
  const none = await spt(['records', 'list', '--kernel', 'other'], { env })
  expect(none.out).toContain('none of the 1 studies')
})

test('bug reports are not overwritten by another run', async () => {
  const bugs = folder.at('found')
  mkdirSync(bugs)
  const call = new Call('tune', [program], new Map([['bugs', [bugs]]]), { err: () => undefined } as never)
  const given = { call, kernel: { name: 'mul' }, kind: 'cpu' } as never
  const wrong = (message: string) => ({ space: 's', point: { by: 2 }, message, trace: '[]', seed: 5 })
  await writeWrongResults(given, [wrong('first'), wrong('second')])
  await writeWrongResults(given, [wrong('third')])
  const said = [1, 2, 3].map((n) => JSON.parse(readFileSync(`${bugs}/spt-bug-mul-${n}.json`, 'utf8')).message)
  expect(said).toEqual(['first', 'second', 'third'])
})

test('an invalid folder for bug reports is rejected before measuring', async () => {
  const db = folder.at('bugs.db')
  const bugs = folder.file('file.txt', 'no folder')
  const { code, err } = await spt(['tune', program, ...data, '--db', db, '--bugs', bugs])
  expect([code, err]).toEqual([1, expect.stringContaining('io/not-a-folder')])
  expect(existsSync(db)).toBe(false)
})

test('unwritable bug reports are reported, and other results are kept', async () => {
  const errs: string[] = []
  const call = new Call('tune', [program], new Map([['bugs', [join(folder.file('file', ''), 'gone')]]]), {
    err: (text: string) => void errs.push(text),
  } as never)
  const wrong = [{ space: 's', point: { by: 2 }, message: 'C differs', trace: '[]', seed: 5 }]
  await writeWrongResults({ call, kernel: { name: 'mul' }, kind: 'cpu' } as never, wrong)
  expect(errs.join('')).toMatch(
    /^warning: a candidate differs .*\[io\/not-\w+(?:-\w+)?\]:\n\{[\s\S]*"C differs"[\s\S]*\}\n$/,
  )
})

test('spaces with positional and named arguments are listed by check', async () => {
  const own = folder.file(
    'own.spt',
    `${PROGRAM}schedule mul.own(most = 8) choose by search { by in 2, 4, 8 where (by <= most) split f by by -> (fo, fi) }\n`,
  )
  expect((await spt(['check', own])).out).toContain('kernel mul (schedules gpu, blocks; spaces own)')
  const calls = [
    ['own', 'mul.own', 3],
    ['own(4)', 'mul.own(4)', 2],
    ['own(most = 2)', 'mul.own(2)', 1],
  ] as const
  for (const [text, , points] of calls)
    expect((await spt(['show', own, '--space', text])).out).toMatch(new RegExp(`^points +${points}$`, 'm'))
  for (const [text, name, points] of sample(calls, 1)) {
    const tuned = await spt(['tune', own, ...data, '--space', text, '--trials', '9', '--json'])
    const { space, trials } = JSON.parse(tuned.out)
    expect([space, trials.length]).toEqual([name, points])
  }
})

test('prints the command of the `choose` schedule, not of its first variant', () => {
  expect(lastSchedule('schedule mul.tuned {\n  as_written\n}\n')).toBe('tuned')
  expect(
    lastSchedule(
      'schedule mul.tuned_1 {\n  as_written\n}\n\nschedule mul.tuned choose {\n  otherwise tuned_1\n}\n',
    ),
  ).toBe('tuned')
  expect(lastSchedule('// nothing')).toBeUndefined()
})

test('--generalise takes the name of a table and several cases, before anything is measured', async () => {
  const told = async (...argv: string[]) =>
    (await spt(['tune', program, ...several, '--trials', '1', ...argv])).err
  const two = ['--bind', `A=${folder.at('graphs/*.mtx')}`, '--size', 'd=4']
  expect(await told(...two, '--generalise', 'x.json')).toContain('is not the name of a dispatch table')
  expect(
    await told('--bind', `A=${folder.at('a.mtx')}`, '--size', 'd=4', '--generalise', folder.at('x.spt')),
  ).toContain('needs several matrices or sizes')
  const other = folder.file('other.spt', 'dispatch add { otherwise a }')
  expect(await told(...two, '--generalise', other)).toContain('table/kernel')
  expect(await told(...two, '--generalise', folder.file('cut.spt', 'dispatch {'))).toContain('parse/unclosed')
})

test.each([
  ['default', 'no schedule is faster than the default, so there are no rules to store'],
  [null, 'tuning ended before all candidates were compared'],
])('--generalise reports why it writes no table: verdict %s', async (verdict, reason) => {
  const table = folder.at('absent-table.spt')
  for (const json of [false, true]) {
    const [out, err]: [string[], string[]] = [[], []]
    const io = { env: {}, out: (t: string) => out.push(t), err: (t: string) => err.push(t) } as never
    const options = new Map([['generalise', [table]], ...(json ? [['json', ['']] as const] : [])])
    const call = new Call('tune', [program], options as never, io)
    const result = { verdict, schedule: null, cases: [] } as never
    expect(await writeTable({ call } as never, [], result)).toBeUndefined()
    const text = `${table} was not written: ${reason}.\n`
    expect([out, err]).toEqual(json ? [[], [text]] : [[`\n// ${text}`], []])
  }
  expect(existsSync(table)).toBe(false)
})

test.each([
  [1, 'found_dispatch'],
  [2, 'found'],
])('the dispatch of a table with %i rules is %s', async (count, name) => {
  const kernel = (await load(program)).kernel()
  const io = { env: {}, out: () => {}, err: () => {} } as never
  const options = new Map([['generalise', [folder.at(`table-of-${name}.spt`)]]])
  const call = new Call('tune', [program], options as never, io)
  const rules = [{ when: 'd > 4', calls: 'found_1' }, { calls: 'found_1' }].slice(-count)
  const schedule = { name: 'found', rules, declarations: 'schedule mul.found_1 {}\n' }
  const tuning = { call, kernel, kind: 'cpu', device: { name: 'none' } } as never
  const cases = [{ name: 'one', files: new Map() }] as never
  const text = await writeTable(tuning, cases, { schedule, cases: [] } as never)
  expect(text).toContain(`schedule mul.${name} choose from`)
})

test('--generalise writes a table, and a program with the dispatch that reads it', async () => {
  const [table, out] = [folder.at('found-table.spt'), folder.at('found.spt')]
  const slow = folder.file(
    'slow.spt',
    `${PROGRAM}\nschedule mul.cpu_space choose by search { by in 1, 2; split f by by -> (fo, fi) }\n`,
  )
  const argv = [
    'tune',
    slow,
    '--bind',
    `A=${folder.at('graphs/*.mtx')}`,
    '--size',
    'd=4',
    '--size',
    'd=8',
    ...several,
  ]
  const { code, out: report } = await spt([...argv, '--generalise', table, '--out', out])
  expect(code).toBe(0)
  if (report.includes('is unchanged')) expect(existsSync(table)).toBe(false)
  else {
    const kernel = (await load(out)).kernel()
    const [name] = kernel.dispatches.slice(-1)
    const { origin } = (await kernel.schedule(name!).choose('cpu', { m: 4, n: 4, d: 4, alpha: 2 })).selection
    expect(origin).toMatchObject({
      status: 'measured',
      matrices: expect.arrayContaining(['one.mtx', 'two.mtx']),
    })
  }
})
