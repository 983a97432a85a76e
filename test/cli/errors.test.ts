/**
 * Every way to get a command wrong gives a clear diagnostic and a non-zero exit. `UPDATE_GOLDEN=1 npx vitest run
 * test/cli/errors` writes the golden texts anew; read the difference before committing it.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { InternalError, SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { LAUNCH_PASSES, LOOP_PASSES } from '../../src/lower/passes.ts'
import { devices } from '../../src/node.ts'
import { sample } from '../support/cases.ts'
import { CASES, FILES } from './cases.ts'
import { Folder, PROGRAM, spt } from './support.ts'

const totalmem = vi.hoisted(() => vi.fn<() => number>(() => 2 ** 40))
vi.mock('node:os', async (original) => ({ ...(await original<typeof import('node:os')>()), totalmem }))

const GOLDEN = new URL('./errors.golden', import.meta.url)
const folder = new Folder()
for (const [name, content] of Object.entries(FILES)) folder.file(name, content)
mkdirSync(folder.at('folder.npy'))
afterAll(() => folder.remove())

/** Sections of the golden file by title. */
const sections = (text: string): Map<string, string> =>
  new Map(text.split(/^(?=## )/m).map((s) => [/^## (.*)\n/.exec(s)?.[1] ?? '', s]))

const update = Boolean(process.env.UPDATE_GOLDEN)
const golden = update ? new Map<string, string>() : sections(readFileSync(GOLDEN, 'utf8'))

describe('one mistake on the command line', () => {
  test.each(Object.entries(CASES))('%s', async (title, line) => {
    const argv = line.split(' ').map((a) => a.replace(/\{([^}]*)\}/, (_, name: string) => folder.at(name)))
    const { code, out, err } = await spt(argv)
    expect(argv.includes('--json') ? out.replace(/^\{"error":.*\}\n$/, '') : out).toBe('')
    expect(code === 1 || code === 2, `exit code ${code}\n${err}`).toBe(true)
    expect(err).not.toMatch(/^\s+at .*:\d+:\d+/m)
    expect(err).not.toContain('compiler/internal')
    const said = `## ${title}\n$ spt ${line.replaceAll('{', '').replaceAll('}', '')}\nexit ${code}\n${folder.plain(err)}\n`
    if (update) golden.set(title, said)
    expect(said).toBe(golden.get(title))
  })

  test('the golden file has these cases and no others', () => {
    if (update) writeFileSync(GOLDEN, [...golden.values()].join(''))
    expect([...golden.keys()].filter((k) => k !== '')).toEqual(Object.keys(CASES))
  })
})

test('control characters of a data file are escaped', async () => {
  const data = folder.file(
    'evil.mtx',
    '%%MatrixMarket \u001b[31mRED\u001b]0;owned\u0007 \u009bx y\n1 1 1\n1 1 1\n',
  )
  const argv = ['run', folder.file('evil.spt', PROGRAM), '--bind', `A=${data}`]
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what is looked for
  const raw = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/
  const { err } = await spt(argv)
  expect(err.toLowerCase()).toContain('\\u001b[31mred')
  expect(err).not.toMatch(raw)
  const { out } = await spt([...argv, '--json'])
  expect(out).not.toMatch(raw)
  expect(JSON.parse(out).error.message.toLowerCase()).toContain('\u001b[31mred')
  expect((await spt(['\u001b[31m'])).err).not.toMatch(raw)
})

test('a name of a file is on one line', async () => {
  const name = 'x\nerror[fake].spt'
  const file = folder.file(name, PROGRAM)
  const data = folder.file('y\nz.mtx', FILES['a.mtx']!)
  const shown = /x\\nerror\[fake\]\.spt/
  for (const argv of [
    ['check', file],
    ['check', `${file}x`],
    ['fmt', '--check', file],
    ['bench', file],
  ]) {
    const { out, err } = await spt(argv)
    if (argv[0] !== 'fmt') expect(`${out}${err}`).toMatch(shown)
    expect(`${out}${err}`).not.toMatch(/^error\[fake/m)
  }
  const wrong = folder.file(name, 'kernel {')
  expect((await spt(['check', wrong])).err).toMatch(shown)
  const { out, err } = await spt(['format', data, '--json', folder.at('u\nv.json')])
  expect([out.split('\n')[0], folder.plain(err)]).toEqual([
    expect.stringContaining('y\\nz.mtx'),
    'wrote FOLDER/u\\nv.json\n',
  ])
})

describe.each(['test/ast/errors', 'test/elaborate/errors'])('programs with one mistake: %s', (dir) => {
  const names = readdirSync(dir).filter((f) => f.endsWith('.spt'))
  // All of them without the command: errors.test.ts there.
  test.each(sample(names, 60))('%s', async (name) => {
    const { code, out, err } = await spt(['check', `${dir}/${name}`])
    expect([code, out]).toEqual([1, ''])
    const said = readFileSync(`${dir}/${name.replace(/\.spt$/, '.golden')}`, 'utf8')
    expect(err.replaceAll(`${dir}/`, '')).toBe(said)
  })
})

describe('devices', () => {
  const refused = async (...argv: string[]): Promise<string> => {
    const { code, out, err } = await spt(['run', ...argv])
    expect([code, out]).toEqual([1, ''])
    return err
  }
  const data = ['--bind', `A=${folder.at('a.mtx')}`, '--size', 'alpha=1']

  test('a missing device', async () => {
    const before = process.env.SPT_LIBCUDA
    process.env.SPT_LIBCUDA = folder.at('libcuda.so')
    try {
      const err = await refused(folder.at('mul.spt'), ...data, '--size', 'd=2', '--device', 'cuda')
      expect(err).toMatch(/^error\[device\/absent\]: .+\n(.*\n)* {2}= hint: /)
    } finally {
      if (before === undefined) delete process.env.SPT_LIBCUDA
      else process.env.SPT_LIBCUDA = before
    }
  })

  test('a driver that does not exist', async () => {
    const before = process.env.SPT_WEBGPU
    process.env.SPT_WEBGPU = 'hardwear'
    try {
      const err = await refused(folder.at('mul.spt'), ...data, '--size', 'd=2', '--device', 'webgpu')
      expect(err).toContain('did you mean: `hardware`?')
    } finally {
      if (before === undefined) delete process.env.SPT_WEBGPU
      else process.env.SPT_WEBGPU = before
    }
  })

  test.each([
    ['cpu', 'wide.spt', ['--size', 'n=40000'], 'C needs 12800000000 bytes'],
    ['webgpu', 'mul.spt', [...data, '--size', 'd=500000000'], 'B needs 8000000000 bytes'],
  ])('buffers over the limits of %s, before data are generated', async (device, program, args, text) => {
    const start = performance.now()
    const err = await refused(folder.at(program), ...args, '--device', device)
    expect(err).toMatch(/^error\[device\/buffer-too-large\]/)
    expect(err).toContain(text)
    expect(performance.now() - start).toBeLessThan(20_000)
  })

  test('more than the memory of the machine', async () => {
    totalmem.mockReturnValueOnce(1000)
    const err = await refused(folder.at('mul.spt'), ...data, '--size', 'd=50')
    expect(err).toContain(
      'error[run/out-of-memory]: the tensors take 1.4 KiB, and this machine has 1,000 bytes',
    )
  })

  test('more threads than a block can have', async () => {
    const { maxThreadsPerBlock } = (await devices.webgpu()).limits
    const program = folder.file(
      'block.spt',
      `${PROGRAM}\nschedule mul.much {\n  split i by ${maxThreadsPerBlock + 1}\n  bind io to block.x, ii to thread.x\n}\n`,
    )
    const err = await refused(
      program,
      '--kernel',
      'mul',
      '--schedule',
      'much',
      '--size',
      'd=2',
      ...data,
      '--device',
      'webgpu',
    )
    expect(err).toMatch(/^error\[(plan\/block-too-large|schedule\/too-many-threads)\]/)
  })
})

describe('bugs', () => {
  test('are short, explain how to report them, and print a stack only on request', async () => {
    const io = { stdin: 'x' }
    const broken = Object.defineProperty({ ...io }, 'stdin', {
      get() {
        throw new TypeError('boom')
      },
    })
    const { code, out, err } = await spt(['fmt', '-'], broken)
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(
      /^error\[compiler\/internal\]: an error of the compiler, not of the program: TypeError: boom\n/,
    )
    expect(err).not.toMatch(/^\s+at /m)
    Object.assign(broken, { env: { SPT_DEBUG: '1' } })
    expect((await spt(['fmt', '-'], broken)).err).toMatch(/^\s+at /m)
  })
  const passes = [...LOOP_PASSES, ...LAUNCH_PASSES] as { name: string; run: unknown }[]
  test.each(passes.map((p) => [p.name, p] as const))('pass %s names itself', async (name, pass) => {
    const { run } = pass
    const file = folder.file('broken.spt', PROGRAM)
    try {
      for (const [thrown, said] of [
        [new InternalError('no buffer x'), 'no buffer x'],
        [new TypeError('boom'), 'TypeError: boom'],
      ] as const) {
        pass.run = () => {
          throw thrown
        }
        const line = `pass ${name} of kernel mul: ${said}`
        const { code, err } = await spt(['emit', file, '--target', 'wgsl'])
        expect(code).toBe(1)
        expect(err.split('\n')[0]).toBe(
          `error[compiler/internal]: an error of the compiler, not of the program: ${line}`,
        )
        const ran = await spt(['run', file, '--json', '--size', 'd=2', '--size', 'm=2', '--size', 'n=2'])
        expect(JSON.parse(ran.out).error).toMatchObject({
          code: 'compiler/internal',
          message: expect.stringContaining(line),
        })
        const kernel = parseProgram(PROGRAM).kernel()
        expect(() => kernel.compilation.plan).toThrow(InternalError)
        expect(() => kernel.compilation.plan).not.toThrow(SptError)
      }
    } finally {
      pass.run = run
    }
  })
})
