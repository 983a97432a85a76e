/** Schedules that are chosen by data, on the command line. */
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { Folder, MATRIX, PROGRAM, spt } from './support.ts'

const folder = new Folder()
afterAll(() => folder.remove())
afterEach(() => vi.unstubAllEnvs())
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

test('all missing options are reported at once', async () => {
  const file = folder.file(
    'missing.spt',
    `${PROGRAM}
schedule mul.pick choose {
  when (cpu and m > 1) blocks(2)
  when (cuda and processors > 100 and (d > 3 or longest(j) > 4)) blocks(d)
  when (cuda and d > 3 and nnz(A) > 5) blocks(3)
  when (cuda) gpu
  when (n > 1) gpu
}
`,
  )
  const missing = async (target: string, ...more: string[]): Promise<string[]> => {
    const { err } = await spt(['emit', file, '--target', target, '--schedule', 'pick', ...more])
    return [...err.matchAll(/^error\[\S+\]: missing(?: size)? (number of SMs|\S+?)[, ]/gm)].map((m) => m[1]!)
  }
  expect(await missing('cuda')).toEqual(['number of SMs', 'd', 'longest(j)', 'nnz(A)'])
  expect(await missing('cuda', '--size', 'd=4')).toEqual(['number of SMs', 'nnz(A)'])
  expect(await missing('cuda', '--size', 'd=2')).toEqual(['number of SMs', 'longest(j)'])
  expect(await missing('cuda', '--size', 'd=2', '--processors', '50')).toEqual([])
  expect(await missing('wgsl')).toEqual(['n'])
  expect(await missing('js')).toEqual(['m', 'n'])
})

test('reports stored elements for any spacing of arguments', async () => {
  const file = folder.file(
    'covered.spt',
    `import "sparsetile/kernels/formats.spt"
${PROGRAM}
schedule mul.pick choose {
  when (fill_ratio(A, bsr(2)) > 0.5) blocks(2)
  otherwise gpu
}
`,
  )
  const emitted = (...more: string[]) =>
    spt(['emit', file, '--target', 'wgsl', '--schedule', 'pick', ...more])
  const [full, sparse] = [
    await emitted('--size', 'fill_ratio(A,bsr( 2 ))=0.75'),
    await emitted('--size', 'fill_ratio(A, bsr(2))=0.25'),
  ]
  expect([full.err, sparse.err]).toEqual(['', ''])
  expect(full.out).not.toBe(sparse.out)
  for (const [a, b] of [
    ['fill_ratio(A,bsr(2))', 'fill_ratio(A, bsr(2))'],
    ['fill_ratio(A, bsr(2))', 'fill_ratio( A,bsr( 2 ) )'],
    ['d', ' d '],
  ]) {
    const { code, err } = await emitted('--size', `${a}=0.5`, '--size', `${b}=0.75`)
    expect([code, err]).toEqual([2, expect.stringContaining('is given twice')])
  }
  for (const value of ['inf', 'nan', '-1'])
    expect((await emitted('--size', `fill_ratio(A, bsr(2))=${value}`)).err).toContain(
      'a finite number that is not negative',
    )
  expect((await emitted()).err).toContain("--size 'fill_ratio(A, bsr(2))=…'")
  expect((await emitted('--bind', `A=${matrix}`)).out).toBe(full.out)
})

test('format queries may contain comparisons', async () => {
  const asked = 'fill_ratio(A, bsr(2) where (i >= 3) + bsr(4))'
  const file = folder.file(
    'compared.spt',
    `import "sparsetile/kernels/formats.spt"
${PROGRAM}
schedule mul.pick choose {
  when (${asked} > 0.5) blocks(2)
  otherwise gpu
}
`,
  )
  const emitted = (share: number) =>
    spt(['emit', file, '--target', 'wgsl', '--schedule', 'pick', '--size', `${asked}=${share}`])
  const [full, sparse] = [await emitted(0.75), await emitted(0.25)]
  expect([full.err, sparse.err]).toEqual(['', ''])
  expect(full.out).not.toBe(sparse.out)
})

describe('spt run', () => {
  test('selects a schedule, prints it with the reason, and agrees with the reference', async () => {
    const { code, out } = await spt([
      'run',
      program,
      '--schedule',
      'pick',
      ...bound,
      '--size',
      'd=3',
      '--verify',
      '--verbose',
    ])
    expect(code).toBe(0)
    expect(out).toMatch(/^schedule +blocks\(3\)$/m)
    expect(out).toMatch(/^selected +by pick: longest\(j\) > 1 and d % 3 == 0 \(longest\(j\) = 2, d = 3\)$/m)
    expect(out).toContain('agrees with the reference')
  })

  test('uses `auto` if it exists', async () => {
    const json = async (d: number, ...more: string[]) =>
      JSON.parse((await spt(['run', auto, ...bound, '--size', `d=${d}`, '--json', ...more])).out) as {
        schedule: string
        dispatch: unknown
      }
    expect(await json(3)).toMatchObject({
      schedule: 'blocks(3)',
      dispatch: { name: 'auto', reason: 'longest(j) > 1 and d % 3 == 0', values: { 'longest(j)': 2, d: 3 } },
    })
    expect(await json(4)).toMatchObject({ schedule: 'gpu', dispatch: { reason: 'otherwise' } })
    expect(await json(3, '--schedule', 'gpu')).toMatchObject({ schedule: 'gpu', dispatch: null })
  })

  test('reports a `choose` without a true condition', async () => {
    const { code, err } = await spt(['run', program, '--schedule', 'pick', ...bound, '--size', 'd=4'])
    expect(code).toBe(1)
    expect(err).toContain('error[choose/no-match]')
    expect(err).toContain('gpu: d == 5 does not hold: d is 4')
  })
})

describe('arguments of `choose` schedules', () => {
  const path = folder.file(
    'sized.spt',
    `${PROGRAM}
schedule mul.auto(b = 2, least = b) choose {
  when (longest(j) >= least) blocks(b * d)
  otherwise gpu
}
`,
  )
  test('are passed as arguments of schedules', async () => {
    const json = async (...more: string[]) =>
      JSON.parse((await spt(['run', path, ...bound, '--size', 'd=3', '--json', ...more])).out)
    expect(await json()).toMatchObject({
      schedule: 'blocks(6)',
      dispatch: { name: 'auto', values: { 'longest(j)': 2, least: 2, b: 2 } },
    })
    expect(await json('--schedule', 'auto(1)')).toMatchObject({
      schedule: 'blocks(3)',
      dispatch: { name: 'auto(1)', reason: 'longest(j) >= least', values: { least: 1 } },
    })
    expect(await json('--schedule', 'auto(1, 3)')).toMatchObject({ schedule: 'gpu' })
    const { err } = await spt(['run', path, ...bound, '--size', 'd=3', '--schedule', 'auto(1, 2, 3)'])
    expect(err).toContain('error[schedule/arguments]: schedule auto is given 3 arguments')
    expect(err).toContain('at most 2: (b, least)')
  })

  test('are accepted by emit and show', async () => {
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
  test('a missing size is one error without a place in a program, from every command', async () => {
    const kernel = ['kernels/spmm.spt', '--kernel', 'spmm', '--bind', 'A=data/cora.mtx']
    for (const command of [['run'], ['explain'], ['explain', '--device', 'cpu'], ['tune', '--trials', '1']]) {
      const { code, err } = await spt([...command, ...kernel])
      expect([command, code, err.match(/error\[/g)?.length]).toEqual([command, 1, 1])
      expect(err).toMatch(
        /^error\[bind\/missing-size\]: missing size d \((schedule|space) \w+ depends on it\)\n {2}= hint: --size d=64\n/,
      )
    }
  })

  test('emit and show report missing sizes', async () => {
    for (const command of [['emit', '--target', 'wgsl'], ['show']]) {
      const { code, err } = await spt([...command, program, '--schedule', 'pick', '--size', 'longest(j)=7'])
      expect(code).toBe(1)
      expect(err).toContain('error[bind/missing-size]: missing size d (schedule pick depends on it)')
      expect(err).toContain('= hint: --size d=64')
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

  test('emit accepts data instead of sizes and statistics', async () => {
    const emit = (path: string, ...more: string[]) => spt(['emit', path, '--target', 'cuda', ...more])
    const data = ['--bind', `A=${matrix}`, '--size', 'd=6']
    const picked = await emit(program, '--schedule', 'pick', ...data)
    expect(picked).toEqual(await emit(program, '--schedule', 'blocks(3)'))
    expect((await emit(auto, ...data)).out).toBe((await emit(program, '--schedule', 'blocks(6)')).out)
    const fixed = await emit(program, '--schedule', 'gpu', ...data.slice(0, 2))
    expect(fixed.code).toBe(2)
    expect(folder.plain(fixed.err)).toContain('--bind A=FOLDER/a.mtx has no effect')
    expect((await emit(program, '--schedule', 'pick', '--bind', `Q=${matrix}`)).err).toContain(
      'error[bind/unknown-name]',
    )
  })

  test('show prints the loops after a step of the selected schedule', async () => {
    const given = ['--size', 'd=6', '--size', 'longest(j)=2', '--device', 'cuda']
    const show = async (...more: string[]) => (await spt(['show', program, ...more])).out
    expect(await show('--schedule', 'pick', ...given)).toBe(await show('--schedule', 'blocks(3)'))
    expect(await show('--schedule', 'pick', ...given, '--after', '0')).toBe(await show())
  })

  describe('the compute capability is an option', () => {
    const path = folder.file(
      'chip.spt',
      `${PROGRAM}
schedule mul.chip(least = 1) choose {
  when (capability >= 9.0 and d >= least) blocks(9)
  otherwise blocks(8)
}
schedule mul.auto choose {
  when (capability >= 9.0) blocks(7)
  otherwise blocks(6)
}
`,
    )
    const emit = ['emit', path, '--target', 'cuda']
    const show = ['show', path, '--device', 'cuda', '--stage', '2']

    test.each([
      ['emit', emit],
      ['show', show],
    ])('to %s', async (_, command) => {
      const under = async (schedule: string, ...more: string[]) =>
        spt([...command, '--schedule', schedule, ...more])
      const chip = (capability: string) => under('chip(2)', '--size', 'd=4', '--capability', capability)
      expect((await chip('9.0')).code).toBe(0)
      expect(await chip('9.0')).toEqual(await under('blocks(9)'))
      expect(await chip('12.0')).toEqual(await under('blocks(9)'))
      expect(await chip('8.9')).toEqual(await under('blocks(8)'))
      const { code, err } = await under('chip(2)', '--size', 'd=4')
      expect(code).toBe(1)
      expect(err).toContain('error[choose/unknown-capability]')
      expect(err).toContain('--capability 9.0')
    })

    test('emit, for the default schedule', async () => {
      const named = await spt([...emit, '--schedule', 'blocks(7)'])
      expect(await spt([...emit, '--capability', '9.0'])).toEqual(named)
      expect(await spt(emit)).toEqual(await spt([...emit, '--schedule', 'gpu']))
    })

    test('explain, without a device', async () => {
      vi.stubEnv('SPT_LIBCUDA', folder.at('libcuda.so'))
      const explain = (...more: string[]) =>
        spt(['explain', path, ...bound, '--size', 'd=3', '--device', 'cuda', ...more])
      expect((await explain('--capability', '8.6')).out).toContain('schedule  blocks(6)')
      expect((await explain('--capability', '9.0')).out).toContain('schedule  blocks(7)')
      expect((await explain()).err).toContain('--capability 9.0')
    })
  })

  test('other device properties are options', async () => {
    const path = folder.file(
      'figures.spt',
      `${PROGRAM}
schedule mul.auto(least = 1) choose {
  when (has(subgroup_size(32)) and d <= 2 * processors) blocks(ceildiv(processors, 8))
  otherwise blocks(6)
}
`,
    )
    for (const target of ['cuda', 'wgsl']) {
      const emit = (...more: string[]) => spt(['emit', path, '--target', target, ...more])
      const given = (d: number, feature: string) =>
        emit('--size', `d=${d}`, '--processors', '132', '--feature', 'f16', '--feature', feature)
      const named = await emit('--schedule', 'blocks(17)')
      expect(named.code).toBe(0)
      expect(await given(264, 'subgroup_size(32)')).toEqual(named)
      expect(await given(264, ' subgroup_size( 32 )')).toEqual(named)
      expect(await given(265, 'subgroup_size(32)')).toEqual(await emit('--schedule', 'blocks(6)'))
      expect(await emit('--feature', 'subgroup_size(16)')).toEqual(await emit('--schedule', 'blocks(6)'))
      const { code, err } = await emit('--size', 'd=4', '--feature', 'subgroup_size(32)')
      expect(code).toBe(1)
      expect(err).toContain('error[choose/unknown-processors]')
      expect(err).toContain('--processors 132')
    }
    const show = ['show', path, '--stage', '2', '--device', 'webgpu', '--schedule']
    const figures = ['--size', 'd=8', '--processors', '4', '--feature', 'subgroup_size(32)']
    expect(await spt([...show, 'auto', ...figures])).toEqual(await spt([...show, 'blocks(1)']))
    vi.stubEnv('SPT_LIBCUDA', folder.at('libcuda.so'))
    const explained = await spt(['explain', path, ...bound, ...figures, '--device', 'cuda'])
    expect(explained.out).toContain('schedule  blocks(1)')
  })

  test('check lists `choose` schedules', async () => {
    expect((await spt(['check', auto])).out).toContain('kernel mul (schedules gpu, blocks, auto)')
  })
})

test('check applies calls with constant arguments', async () => {
  const calls = (rows: number): string => `${PROGRAM}
schedule mul.rows(rows) { split i by rows -> (io, ii) }
schedule mul.auto choose { when (cpu) rows(${rows}) otherwise gpu }
`
  const { code, err } = await spt(['check', folder.file('wrong.spt', calls(0))])
  expect(code).toBe(1)
  expect(err).toMatch(/^error\[schedule\/.*\n.*wrong\.spt:/)
  expect(err).toContain('rows(0)')
  expect((await spt(['check', folder.file('right.spt', calls(4))])).code).toBe(0)
})

test('limits of the given capability reject a schedule, another capability accepts it', async () => {
  const file = folder.file(
    'capability.spt',
    `import "sparsetile/kernels/tile-wise.spt"
schedule pruned_linear_f16.pick choose {
  when (cuda and capability >= 8.0) mma(stages = 5)
  otherwise gpu
}
`,
  )
  const emitted = (capability: string) =>
    spt([
      ...['emit', file, '--kernel', 'pruned_linear_f16', '--target', 'cuda'],
      ...['--schedule', 'pick', '--capability', capability],
    ])
  const refused = await emitted('8.6')
  expect(refused.err).toMatch(
    /^error\[plan\/shared-too-large\]: \S+ needs 163840 bytes of shared memory; devices of compute capability 8.6 have 101376/,
  )
  expect([refused.code, refused.out]).toEqual([1, ''])
  for (const held of ['8.0', '9.0', '13.0']) expect((await emitted(held)).code).toBe(0)
})

test('a missing dispatch table: the command that writes it', async () => {
  const file = folder.file('tabled.spt', `${PROGRAM}\nschedule mul.auto choose from "tab.spt"\n`)
  const { code, err } = await spt(['check', file])
  expect(code).toBe(1)
  expect(err).toContain('error[io/not-found]')
  expect(folder.plain(err)).toContain(
    'remove this dispatch until `spt tune … --generalise FOLDER/tab.spt` has written the table',
  )
})
