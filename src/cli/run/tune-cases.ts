/** Cases of `spt tune`: files and sizes given several times make several cases. */
import { readdir, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { guarded } from '../../io/node-files.ts'
import { placeOf } from '../../io/package.ts'
import type { Call } from '../command.ts'
import { misused } from '../usage.ts'
import { numberOf } from './bind-options.ts'

export interface TuneFiles {
  readonly name: string
  /** The same matrix with other sizes has the same. */
  readonly group: string
  readonly files: ReadonlyMap<string, string>
  readonly params: ReadonlyMap<string, number>
}

/** Cases beyond which it is a slip. */
const MOST_CASES = 1000

/** Each file of the buffer that has several, with each of the sizes. One where nothing has several. */
export async function casesOf(call: Call): Promise<readonly TuneFiles[]> {
  const bound = await Promise.all(
    [...call.lists('bind', 'PATH')].map(
      async ([name, paths]) =>
        [name, (await Promise.all(paths.map((p) => matching(call, name, p)))).flat()] as const,
    ),
  )
  const sizes = [...call.lists('size', 'N')].map(
    ([name, texts]) => [name, texts.map((t) => numberOf(call, name, t))] as const,
  )
  for (const [option, list] of [['bind', bound] as const, ['size', sizes] as const])
    for (const [name, values] of list) onceEach(call, `--${option} ${name}`, values)
  const several = bound.filter(([, paths]) => paths.length > 1)
  if (several.length > 1)
    misused({
      command: call.command,
      message: `${several.map(([name]) => name).join(' and ')} have several files`,
      expected: 'several files of one buffer, and one of each other',
    })
  const varied = several[0]?.[0]
  const paths = several[0]?.[1] ?? ['']
  const names = namesOf(paths)
  const combinations = sizes.reduce<readonly (readonly [string, number])[][]>(
    (all, [name, values]) => all.flatMap((c) => values.map((v) => [...c, [name, v] as const])),
    [[]],
  )
  const isSized = new Set(sizes.filter(([, values]) => values.length > 1).map(([name]) => name))
  const cases = paths.flatMap((path, k) =>
    combinations.map((params): TuneFiles => {
      const own = params.filter(([name]) => isSized.has(name)).map(([name, v]) => `${name}=${v}`)
      const name = [...(varied === undefined ? [] : [names[k]!]), ...own].join(' ')
      return {
        name,
        group: varied === undefined ? name : names[k]!,
        files: new Map(bound.map(([n, [first]]) => [n, n === varied ? path : first!])),
        params: new Map(params),
      }
    }),
  )
  if (cases.length > MOST_CASES)
    misused({
      command: call.command,
      message: `these are ${cases.length} cases`,
      expected: `at most ${MOST_CASES}`,
    })
  return cases
}

function onceEach(call: Call, what: string, values: readonly (string | number)[]): void {
  const twice = values.find((v, k) => values.indexOf(v) < k)
  if (twice !== undefined)
    misused({
      command: call.command,
      message: `${what}=${twice} is given twice`,
      expected: 'each value once',
    })
}

/** File names up to their first point, if these are distinct. */
function namesOf(paths: readonly string[]): readonly string[] {
  const short = paths.map((p) => basename(p).replace(/(?<=.)\..*$/, ''))
  return short.map((s, k) => (short.indexOf(s) === short.lastIndexOf(s) ? s : paths[k]!))
}

/** Files of a folder that match `*` and `?` in the path; a path without these is returned unchanged. */
async function matching(call: Call, name: string, path: string): Promise<readonly string[]> {
  const file = basename(path)
  if (!/[*?]/.test(file) || (await stat(path).catch(() => null))) return [path]
  const folder = dirname(path)
  const place = placeOf(folder)
  const pattern = new RegExp(
    `^${file
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replaceAll('*', '.*')
      .replaceAll('?', '.')}$`,
  )
  const entries = await guarded(folder, 'read', () => readdir(place))
  const found = entries.filter((e) => pattern.test(e) && (!e.startsWith('.') || file.startsWith('.'))).sort()
  if (found.length === 0)
    misused({
      command: call.command,
      message: `--bind ${name}=${path}: no file is called so`,
      expected: `a file in ${folder} that ${file} matches`,
    })
  return found.map((f) => join(folder, f))
}
