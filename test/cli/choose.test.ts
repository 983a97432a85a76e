/** Schedules that are chosen by data, on the command line. */
import { afterAll, describe, expect, test } from 'vitest'
import { Folder, MATRIX, PROGRAM, spt } from './support.ts'

const folder = new Folder()
afterAll(() => folder.remove())
const program = folder.file(
  'mul.spt',
  `${PROGRAM}
schedule mul.pick choose {
  when (cuda and longest(j) > 1 and d % 3 == 0) blocks(3)
  when (longest(j) > 1 and d % 3 == 0) blocks(d)
  when (d == 5) gpu
}
`,
)
const auto = folder.file(
  'auto.spt',
  `${PROGRAM}
schedule mul.auto choose {
  when (longest(j) > 1 and d % 3 == 0) blocks(d)
  otherwise gpu
}
`,
)
const matrix = folder.file('a.mtx', MATRIX)
const bound = ['--bind', `A=${matrix}`, '--size', 'alpha=2']

describe('spt run', () => {
  test('chooses, says what and why, and computes the same', async () => {
    const { code, out } = await spt([
      'run',
      program,
      '--schedule',
      'pick',
      ...bound,
      '--size',
      'd=3',
      '--verify',
    ])
    expect(code).toBe(0)
    expect(out).toMatch(/^schedule {2}blocks\(3\)$/m)
    expect(out).toMatch(/^chosen by pick: longest\(j\) > 1 and d % 3 == 0 \(longest\(j\) = 2, d = 3\)$/m)
    expect(out).toContain('agrees with the reference')
  })

  test('takes the choice called auto where there is one', async () => {
    const json = async (d: number, ...more: string[]) =>
      JSON.parse((await spt(['run', auto, ...bound, '--size', `d=${d}`, '--json', ...more])).out) as {
        schedule: string
        choice: unknown
      }
    expect(await json(3)).toMatchObject({
      schedule: 'blocks(3)',
      choice: { name: 'auto', because: 'longest(j) > 1 and d % 3 == 0', values: { 'longest(j)': 2, d: 3 } },
    })
    expect(await json(4)).toMatchObject({ schedule: 'gpu', choice: { because: 'otherwise' } })
    expect(await json(3, '--schedule', 'gpu')).toMatchObject({ schedule: 'gpu', choice: null })
  })

  test('says what no condition of which holds', async () => {
    const { code, err } = await spt(['run', program, '--schedule', 'pick', ...bound, '--size', 'd=4'])
    expect(code).toBe(1)
    expect(err).toContain('error[choose/no-match]')
    expect(err).toContain('gpu: d == 5 does not hold: d is 4')
  })
})

describe('arguments of choices', () => {
  const path = folder.file(
    'sized.spt',
    `${PROGRAM}
schedule mul.auto(b = 2, least = b) choose {
  when (longest(j) >= least) blocks(b * d)
  otherwise gpu
}
`,
  )
  test('are given as those of schedules are', async () => {
    const json = async (...more: string[]) =>
      JSON.parse((await spt(['run', path, ...bound, '--size', 'd=3', '--json', ...more])).out)
    expect(await json()).toMatchObject({
      schedule: 'blocks(6)',
      choice: { name: 'auto', values: { 'longest(j)': 2, least: 2, b: 2 } },
    })
    expect(await json('--schedule', 'auto(1)')).toMatchObject({
      schedule: 'blocks(3)',
      choice: { name: 'auto(1)', because: 'longest(j) >= least', values: { least: 1 } },
    })
    expect(await json('--schedule', 'auto(1, 3)')).toMatchObject({ schedule: 'gpu' })
    const { err } = await spt(['run', path, ...bound, '--size', 'd=3', '--schedule', 'auto(1, 2, 3)'])
    expect(err).toContain('error[schedule/arguments]: schedule auto is given 3 arguments')
    expect(err).toContain('at most 2: (b, least)')
  })

  test('emit and show take them', async () => {
    const out = async (command: string[], schedule: string, ...more: string[]) =>
      (await spt([...command, path, '--schedule', schedule, ...more])).out
    const sizes = ['--size', 'd=2', '--size', 'longest(j)=7']
    for (const command of [['emit', '--target', 'cuda'], ['show']]) {
      const five = await out(command, 'blocks(10)')
      expect(five).not.toBe('')
      expect(await out(command, 'auto(5)', ...sizes)).toBe(five)
      expect(await out(command, 'auto(8)', ...sizes)).toBe(await out(command, 'gpu'))
    }
    expect((await spt(['check', path])).out).toContain('kernel mul (schedules gpu, blocks, auto)')
  })
})

describe('without data', () => {
  test('emit and show need sizes, and say so', async () => {
    for (const command of [['emit', '--target', 'wgsl'], ['show']]) {
      const { code, err } = await spt([...command, program, '--schedule', 'pick', '--size', 'longest(j)=7'])
      expect(code).toBe(1)
      expect(err).toContain('error[choose/unknown-size]: the schedule depends on d')
      expect(err).toContain('--size d=128')
      expect(err).toContain('or name a schedule')
    }
    const { err } = await spt(['emit', program, '--target', 'cuda', '--schedule', 'pick', '--size', 'd=3'])
    expect(err).toContain('error[choose/unknown-statistic]')
    const typo = await spt(['emit', program, '--target', 'cuda', '--schedule', 'pick', '--size', 'dd=3'])
    expect(typo.err).toMatch(/bind\/unknown-size[\s\S]*did you mean: `d`/)
  })

  test('emit takes sizes and statistics; the device is that of the target', async () => {
    const given = ['--size', 'd=6', '--size', 'longest(j) = 2']
    const emit = (target: string, schedule: string) =>
      spt([
        'emit',
        program,
        '--target',
        target,
        '--schedule',
        schedule,
        ...(schedule === 'pick' ? given : []),
      ])
    const cuda = await emit('cuda', 'pick')
    expect(cuda).toEqual(await emit('cuda', 'blocks(3)'))
    expect((await emit('wgsl', 'pick')).out).toBe((await emit('wgsl', 'blocks(6)')).out)
    const usual = async (...sizes: string[]) => (await spt(['emit', auto, '--target', 'cuda', ...sizes])).out
    expect(await usual(...given)).toBe((await emit('cuda', 'blocks(6)')).out)
    expect(await usual()).toBe((await emit('cuda', 'gpu')).out)
  })

  test('show, after a step of what is chosen', async () => {
    const given = ['--size', 'd=6', '--size', 'longest(j)=2', '--device', 'cuda']
    const show = async (...more: string[]) => (await spt(['show', program, ...more])).out
    expect(await show('--schedule', 'pick', ...given)).toBe(await show('--schedule', 'blocks(3)'))
    expect(await show('--schedule', 'pick', ...given, '--after', '0')).toBe(await show())
  })

  test('the compute capability is given like a size', async () => {
    const path = folder.file(
      'chip.spt',
      `${PROGRAM}\nschedule mul.chip choose {\n  when (capability >= 9.0) blocks(9)\n  otherwise blocks(8)\n}\n`,
    )
    const emit = async (...sizes: string[]) =>
      spt(['emit', path, '--target', 'cuda', '--schedule', 'chip', ...sizes.flatMap((s) => ['--size', s])])
    const named = async (schedule: string) => spt(['emit', path, '--target', 'cuda', '--schedule', schedule])
    expect(await emit('capability=9.0')).toEqual(await named('blocks(9)'))
    expect(await emit('capability=8.9')).toEqual(await named('blocks(8)'))
    expect((await emit('d=8')).err).toContain('error[choose/unknown-capability]')
  })

  test('check names choices', async () => {
    expect((await spt(['check', auto])).out).toContain('kernel mul (schedules gpu, blocks, auto)')
  })
})
