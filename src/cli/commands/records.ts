import { SptError } from '../../ast/diagnostics/diagnostic.ts'
import { nearest } from '../../ast/diagnostics/suggest.ts'
import { atEnd } from '../../runtime/dispose.ts'
import { EXPORT_FORMATS } from '../../search/records/export.ts'
import type { Records } from '../../search/records/index.ts'
import { type RecordFilter, STATUSES } from '../../search/records/types.ts'

import { type Call, type CommandSpec, longName } from '../arguments/command.ts'
import { optionTable } from '../arguments/option-table.ts'
import { EXIT } from '../output/failure.ts'
import { count } from '../output/figures.ts'

const MAX_COUNT = 2 ** 31
const DAY_MS = 24 * 3600 * 1000
const FILTER_OPTIONS = ['study', 'kernel', 'device']

interface Action {
  readonly args: readonly string[]
  /** Options in addition to `--db`. */
  readonly options: readonly string[]
  readonly writes?: boolean
  readonly run: (records: Records, call: Call, arg: string) => Promise<void>
}

const ACTIONS: Readonly<Record<string, Action>> = {
  list: { args: [], options: [...FILTER_OPTIONS, 'json'], run: list },
  show: { args: ['ID'], options: ['limit', 'json'], run: show },
  export: { args: [], options: [...FILTER_OPTIONS, 'status', 'limit', 'format', 'out'], run: exportAll },
  prune: { args: [], options: ['study', 'older-than', 'keep-best', 'json'], writes: true, run: prune },
}

export const records: CommandSpec = {
  name: 'records',
  args: 'list | show ID | export | prune',
  count: [0, Number.POSITIVE_INFINITY],
  summary: 'List, show, export and delete records of searches',
  options: optionTable`
    --db <FILE>  [read]  The file of records (default: records.db in the user's cache folder)
    --study <ID>  [repeats]  Only these studies; a unique prefix of an id suffices
    --kernel <K>  list, export: only this kernel, by name or hash
    --device <D>  list, export: only this device, by kind or name
    --status <S>  export: only trials with this status: ${STATUSES.join(', ')}
    --limit <N>  show, export: maximum number of trials (default of show: 10)
    --format <F>  export: ${EXPORT_FORMATS.join(', ')} (a journal of Optuna)
    --out <FILE>  [write]  export: write a file
    --older-than <DAYS>  prune: delete trials that ended more than this many days ago
    --keep-best <N>  prune: keep the N fastest trials of each study
    --json  list, show, prune: one JSON object
  `,
  notes: [
    'A study is a kernel with its data, sizes, space, device, driver and compiler; a trial is a point of the space with its\nresult. prune keeps trials with a wrong result, because they disqualify their candidates. To delete such trials, use\n--study as the only option.',
  ],
  examples: [
    'spt records list',
    'spt records show 3f2a',
    'spt records export --format csv --out trials.csv',
    'spt records prune --older-than 90 --keep-best 5',
  ],
  async run(call) {
    const [action, arg] = actionOf(call)
    const { openRecords, defaultRecordsPath } = await import('../../search/records/index.ts')
    const path = call.one('db') ?? defaultRecordsPath(call.io.env)
    // A missing file is an error for `prune`, too, so it is first opened for reading.
    const readable = await openRecords(path, { readonly: true }).catch((e: unknown) => {
      // Opening for writing makes the tables of an empty file.
      if (e instanceof SptError && e.code === 'records/older-schema') return openRecords(path)
      throw e
    })
    if (action.writes) readable.close()
    const store = action.writes ? await openRecords(path) : readable
    using _ = atEnd(() => store.close())
    await action.run(store, call, arg)
    return EXIT.ok
  },
}

function actionOf(call: Call): [Action, string] {
  const [name = '', ...args] = call.args
  const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined
  if (!action) {
    const candidates = Object.keys(ACTIONS)
    const isNear = nearest(name, candidates).length > 0
    return call.reject(name === '' ? 'what to do is missing' : `records have no ${name}`, {
      expected: candidates.join(', '),
      ...(isNear && { lookup: { name, candidates } }),
    })
  }
  const { length } = action.args
  if (args.length < length) call.reject('an id is missing', { expected: `spt records ${name} ID` })
  if (args.length > length)
    call.reject(`there is no place for ${args.slice(length).join(' ')}`, {
      expected: ['spt records', name, ...action.args].join(' '),
    })
  for (const option of records.options.map(longName))
    if (option !== 'db' && call.flag(option) && !action.options.includes(option))
      call.reject(`${name} has no option --${option}`, {
        expected: action.options.map((o) => `--${o}`).join(', '),
      })
  return [action, args[0] ?? '']
}

function filterOf(store: Records, call: Call): RecordFilter {
  const studies = call.many('study').map((id) => findStudy(store, call, id))
  const status = call.choice('status', STATUSES)
  return {
    ...(studies.length === 0 ? {} : { studies }),
    kernel: call.one('kernel'),
    device: call.one('device'),
    ...(status && { status }),
    limit: call.integer('limit', 0, MAX_COUNT),
  }
}

function findStudy(store: Records, call: Call, id: string): string {
  const matches = store.studies().filter((s) => s.id.startsWith(id))
  if (matches.length === 1) return matches[0]!.id
  return call.reject(
    matches.length === 0 ? `there is no study ${id}` : `${count(matches.length)} studies begin with ${id}`,
    { expected: 'the id of a study, or a prefix of the id', hint: 'spt records list shows the ids' },
  )
}

async function list(store: Records, call: Call): Promise<void> {
  const { limit: _, ...filter } = filterOf(store, call)
  const studies = store.studies(filter)
  if (call.flag('json')) return call.io.out(`${JSON.stringify({ db: store.path, studies })}\n`)
  const { studyTable } = await import('../../search/records/report.ts')
  call.io.out(studyTable(studies, store.path, store.studies().length))
}

async function show(store: Records, call: Call, id: string): Promise<void> {
  const [trial, another] = store.query({ id, limit: 2 })
  const studies = store.studies().filter((s) => s.id.startsWith(id))
  const { studyReport, trialReport } = await import('../../search/records/report.ts')
  const isUnique = studies.length + (trial ? 1 : 0) + (another ? 1 : 0) === 1
  if (!isUnique)
    call.reject(
      `${trial || studies.length > 0 ? 'several studies and trials begin' : 'no study or trial begins'} with ${id}`,
      {
        expected: 'an id, or an unambiguous prefix',
        hint: 'spt records list shows ids of studies, show ids of trials',
      },
    )
  const [study] = studies
  if (!study) {
    const { kernelName, device } = store.study(trial!.study)!
    return call.io.out(
      call.flag('json')
        ? `${JSON.stringify(trial)}\n`
        : trialReport(trial!, `${kernelName} on ${device.name}`),
    )
  }
  const filter = { studies: [study.id] }
  const limit = call.integer('limit', 0, MAX_COUNT) ?? 10
  const best = store.best({ ...filter, limit })
  const unsuccessful = store.query({ ...filter, status: ['rejected', 'failed', 'wrong', 'bounded'] })
  call.io.out(
    call.flag('json')
      ? `${JSON.stringify({ ...study, fastest: best })}\n`
      : studyReport(study, best, unsuccessful),
  )
}

async function exportAll(store: Records, call: Call): Promise<void> {
  const format =
    call.choice('format', EXPORT_FORMATS) ??
    call.reject('--format is missing', { expected: EXPORT_FORMATS.join(', ') })
  const text = store.export(format, filterOf(store, call))
  const path = call.one('out')
  if (path === undefined) call.io.out(text)
  else await call.write(path, text)
}

async function prune(store: Records, call: Call): Promise<void> {
  const days = call.integer('older-than', 0, MAX_COUNT)
  const keepBest = call.integer('keep-best', 0, MAX_COUNT)
  const { studies } = filterOf(store, call)
  if (days === undefined && keepBest === undefined && !studies)
    call.reject('missing option: which records to delete', {
      expected: '--older-than, --keep-best or --study',
    })
  const removed = store.prune({
    ...(days !== undefined && { olderThan: Date.now() - days * DAY_MS }),
    ...(keepBest !== undefined && { keepBest }),
    ...(studies && { studies }),
  })
  call.io.out(call.flag('json') ? `${JSON.stringify({ removed })}\n` : `${count(removed)} trials deleted\n`)
}
