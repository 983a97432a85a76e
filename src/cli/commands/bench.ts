import { folderAt } from '../../io/node-files.ts'
import type { Call, CommandSpec } from '../arguments/command.ts'
import { optionTable } from '../arguments/option-table.ts'
import { EXIT } from '../output/failure.ts'

const MAX_MINUTES = 24 * 60

export const bench: CommandSpec = {
  name: 'bench',
  args: '[SUITE …]',
  count: [0, 16],
  summary: 'Measure kernels against the libraries installed here',
  options: optionTable`
    --list  List the suites
    --data <FOLDER>  Folder of the matrices (default: data)
    --matrices <NAMES>  Comma-separated names of matrices or families (road, voxels, road:100000:7), layer
      sizes (3072x768) or tile sizes (32x1)
    --widths <NUMBERS>  Columns of the dense operand (default: 17,32,50,128,512)
    --sparsities <NUMBERS>  Sparsity of the weights (tile-wise, default: 0.75,0.875) or of the run-time
      operand
    --break-even  Find the break-even sparsity of pruned layers against dense layers (tile-wise)
    --device <D>  cuda (default) or webgpu; the baseline on webgpu is the dense product of sparsetile
      (tile-wise, dynamic) or its CUDA version (dynamic-building)
    --schedule <S>  [repeats]  FILE.spt:kernel.schedule(1, 2), in place of the default candidates
    --quick  Small matrices and few cases
    --minutes <N>  Start no case after N minutes (default: 20)
    --json <FILE>  [update]  Write all results after each case; times in microseconds
  `,
  notes: [
    'Every result is checked against float64 before it is timed. C libraries run in this process,\nPython libraries in a separate process. Libraries that are not installed are skipped and listed in the table.',
    'The suites are part of the repository, and not of the npm package.',
  ],
  examples: [
    'spt bench --list',
    'spt bench --quick',
    'spt bench --data DATA --minutes 5 --json figures.json',
  ],
  async run(call) {
    const { bench: measure, suiteNames, TAKEN_BY } = await suites(call)
    if (call.flag('list')) {
      call.io.out(`${suiteNames().join('\n')}\n`)
      return EXIT.ok
    }
    for (const name of call.args)
      if (!suiteNames().includes(name))
        call.reject(`there is no suite ${name}`, {
          lookup: { name, candidates: suiteNames() },
          expected: suiteNames().join(', '),
        })
    const widths = splitList(call.one('widths') ?? '17,32,50,128,512').map(Number)
    if (widths.length === 0 || widths.some((w) => !Number.isInteger(w) || w < 1))
      call.reject(`--widths ${call.one('widths')} is not possible`, {
        expected: 'positive integers separated by commas',
      })
    const matrices = splitList(call.one('matrices') ?? '')
    if (call.one('matrices') !== undefined && matrices.length === 0)
      call.reject('--matrices names none', { expected: 'names separated by commas: cora,pubmed' })
    const sparsityList = call.one('sparsities')
    const sparsities = sparsityList === undefined ? undefined : splitList(sparsityList).map(Number)
    if (sparsities && (sparsities.length === 0 || sparsities.some((x) => !(x >= 0 && x < 1))))
      call.reject(`--sparsities ${sparsityList} is not possible`, {
        expected: 'numbers from 0 to below 1, separated by commas',
      })
    const device = call.choice('device', ['cuda', 'webgpu'] as const) ?? 'cuda'
    for (const [name, suites] of Object.entries(TAKEN_BY)) {
      const isGiven = name === 'break-even' ? call.flag(name) : call.one(name) !== undefined
      if (isGiven && call.args.length > 0 && !call.args.some((suite) => suites.includes(suite)))
        call.reject(`--${name} is not of ${call.args.join(', ')}`, {
          expected: `${suites.join(' or ')} among the suites that run`,
        })
    }
    // If the default folder is missing, synthetic matrices remain.
    const data = call.one('data')
    const passed = await measure(call.args, {
      data: data === undefined ? 'data' : await folderAt(data),
      matrices,
      widths,
      layers: { ...(sparsities && { sparsities }), breakEven: call.flag('break-even'), on: device },
      schedules: call.many('schedule'),
      quick: call.flag('quick'),
      minutes: call.integer('minutes', 1, MAX_MINUTES) ?? 20,
      json: call.one('json'),
      out: call.io.out,
      err: call.io.err,
      again: process.argv.slice(1),
    })
    return passed ? EXIT.ok : EXIT.failed
  },
}

/** The suites name operators, so they are not part of the compiler, and its package does not contain them. */
async function suites(call: Call): Promise<typeof import('../../../bench/gpu/index.ts')> {
  try {
    return await import('../../../bench/gpu/index.ts')
  } catch (cause) {
    if ((cause as { code?: string }).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    return call.reject('the suites are part of the repository, and not of the npm package', {
      expected: 'a clone of the repository',
      hint: 'in the clone: npm install, npm run build, npm run -s spt -- bench',
    })
  }
}

const splitList = (text: string): string[] =>
  text
    .split(',')
    .map((w) => w.trim())
    .filter((w) => w !== '')
