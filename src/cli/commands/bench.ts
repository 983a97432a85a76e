import { folderAt } from '../../io/node-files.ts'
import type { CommandSpec } from '../command.ts'
import { EXIT } from '../failure.ts'
import { misused } from '../usage.ts'

const MOST_MINUTES = 24 * 60

export const bench: CommandSpec = {
  name: 'bench',
  args: '[SUITE …]',
  count: [0, 16],
  summary: 'Measure kernels against the libraries installed here',
  options: [
    { flags: '--list', about: 'Name the suites' },
    { flags: '--data <FOLDER>', about: 'Where the matrices lie (default: data)' },
    {
      flags: '--matrices <NAMES>',
      about: 'Only these, by name, with commas between them; families too (road, voxels, road:100000:7)',
    },
    { flags: '--widths <NUMBERS>', about: 'Columns of the dense operand (default: 32,128,512)' },
    {
      flags: '--schedule <S>',
      about: 'FILE.spt:kernel.schedule(1, 2), instead of the usual candidates',
      repeats: true,
    },
    { flags: '--quick', about: 'Small matrices and few cases' },
    { flags: '--minutes <N>', about: 'Begin no case after that many (default: 20)' },
    {
      flags: '--json <FILE>',
      about: 'Write all figures, anew after each case; times in microseconds',
      file: 'update',
    },
  ],
  notes: [
    'Every result is checked against float64 before it is timed. Libraries are called through their C interface in this\nprocess, Python ones in a process of their own; what is not installed is left out, and the table says so.',
  ],
  examples: [
    'spt bench --list',
    'spt bench --quick',
    'spt bench --data DATA --minutes 5 --json figures.json',
  ],
  async run(call) {
    // The suites are no part of the compiler: they know operators by name.
    const { bench: measure, suiteNames } = await import('../../../bench/gpu/index.ts')
    if (call.flag('list')) {
      call.io.out(`${suiteNames().join('\n')}\n`)
      return EXIT.ok
    }
    for (const name of call.args)
      if (!suiteNames().includes(name))
        misused({
          command: call.command,
          message: `there is no suite ${name}`,
          lookup: { name, candidates: suiteNames() },
          expected: suiteNames().join(', '),
        })
    const widths = words(call.one('widths') ?? '32,128,512').map(Number)
    if (widths.length === 0 || widths.some((w) => !Number.isInteger(w) || w < 1))
      misused({
        command: call.command,
        message: `--widths ${call.one('widths')} is not possible`,
        expected: 'positive integers with commas between them',
      })
    const matrices = words(call.one('matrices') ?? '')
    if (call.one('matrices') !== undefined && matrices.length === 0)
      misused({
        command: call.command,
        message: '--matrices names none',
        expected: 'names with commas between them: cora,pubmed',
      })
    // Without the usual folder there are still synthetic matrices.
    const data = call.one('data')
    const right = await measure(call.args, {
      data: data === undefined ? 'data' : await folderAt(data),
      matrices,
      widths,
      schedules: call.many('schedule'),
      quick: call.flag('quick'),
      minutes: call.integer('minutes', 1, MOST_MINUTES) ?? 20,
      json: call.one('json'),
      out: call.io.out,
      err: call.io.err,
      again: process.argv.slice(1),
    })
    return right ? EXIT.ok : EXIT.failed
  },
}

const words = (text: string): string[] =>
  text
    .split(',')
    .map((w) => w.trim())
    .filter((w) => w !== '')
