/** Cases of `spt tune`: files and sizes given several times make several cases. */
import { readdir, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { withFileErrors } from '../../io/node-files.ts'
import { locate } from '../../io/package/package.ts'
import type { Call } from '../arguments/command.ts'
import { parseSize } from '../run/bind-options.ts'

export interface TuneFiles {
  readonly name: string
  /** Cases of one matrix with different sizes share a group. */
  readonly group: string
  readonly files: ReadonlyMap<string, string>
  readonly params: ReadonlyMap<string, number>
}

/** More cases are assumed to be a mistake. */
const MAX_CASES = 1000

/** All combinations of the files of one buffer with the sizes; one case if nothing is given several times. */
export async function casesOf(call: Call): Promise<readonly TuneFiles[]> {
  const bindings = await Promise.all(
    [...call.lists('bind', 'PATH')].map(
      async ([name, paths]) =>
        [name, (await Promise.all(paths.map((p) => expandGlob(call, name, p)))).flat()] as const,
    ),
  )
  const sizes = [...call.lists('size', 'N')].map(
    ([name, texts]) => [name, texts.map((t) => parseSize(call, name, t))] as const,
  )
  for (const [option, list] of [['bind', bindings] as const, ['size', sizes] as const])
    for (const [name, values] of list) checkDistinct(call, `--${option} ${name}`, values)
  const multiple = bindings.filter(([, paths]) => paths.length > 1)
  if (multiple.length > 1)
    call.reject(`${multiple.map(([name]) => name).join(' and ')} have several files`, {
      expected: 'several files of one buffer, and a single file of every other buffer',
    })
  const variedBuffer = multiple[0]?.[0]
  const paths = multiple[0]?.[1] ?? ['']
  const names = namesOf(paths)
  const combinations = sizes.reduce<readonly (readonly [string, number])[][]>(
    (partial, [name, values]) => partial.flatMap((c) => values.map((v) => [...c, [name, v] as const])),
    [[]],
  )
  const variedSizes = new Set(sizes.filter(([, values]) => values.length > 1).map(([name]) => name))
  const cases = paths.flatMap((path, k) =>
    combinations.map((params): TuneFiles => {
      const sizeTexts = params.filter(([name]) => variedSizes.has(name)).map(([name, v]) => `${name}=${v}`)
      const name = [...(variedBuffer === undefined ? [] : [names[k]!]), ...sizeTexts].join(' ')
      return {
        name,
        group: variedBuffer === undefined ? name : names[k]!,
        files: new Map(bindings.map(([n, [first]]) => [n, n === variedBuffer ? path : first!])),
        params: new Map(params),
      }
    }),
  )
  if (cases.length > MAX_CASES)
    call.reject(`these are ${cases.length} cases`, { expected: `at most ${MAX_CASES}` })
  return cases
}

function checkDistinct(call: Call, option: string, values: readonly (string | number)[]): void {
  const duplicate = values.find((v, k) => values.indexOf(v) < k)
  if (duplicate !== undefined)
    call.reject(`${option}=${duplicate} is given twice`, { expected: 'each value once' })
}

/** File names up to the first dot if distinct, otherwise paths. */
function namesOf(paths: readonly string[]): readonly string[] {
  const short = paths.map((p) => basename(p).replace(/(?<=.)\..*$/, ''))
  return short.map((s, k) => (short.indexOf(s) === short.lastIndexOf(s) ? s : paths[k]!))
}

/** Files of a folder that match `*` and `?` in the path; a path without these is returned unchanged. */
async function expandGlob(call: Call, name: string, path: string): Promise<readonly string[]> {
  const file = basename(path)
  if (!/[*?]/.test(file) || (await stat(path).catch(() => null))) return [path]
  const folder = dirname(path)
  const resolved = locate(folder)
  const pattern = new RegExp(
    `^${file
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replaceAll('*', '.*')
      .replaceAll('?', '.')}$`,
  )
  const entries = await withFileErrors(folder, 'read', () => readdir(resolved))
  const matches = entries
    .filter((e) => pattern.test(e) && (!e.startsWith('.') || file.startsWith('.')))
    .sort()
  if (matches.length === 0)
    call.reject(`--bind ${name}=${path}: no file is called so`, {
      expected: `a file in ${folder} that ${file} matches`,
    })
  return matches.map((f) => join(folder, f))
}
