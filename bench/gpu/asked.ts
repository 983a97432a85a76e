/** What was asked for, checked before a device is opened: a run takes minutes, and a mistake in it none. */
import { existsSync, readdirSync } from 'node:fs'
import { dirname, extname } from 'node:path'
import { fail, SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { checkReplaceable } from '../../src/cache/replace-file.ts'
import { withFileErrors } from '../../src/io/node-files.ts'
import { packageFile } from '../support.ts'
import { ANY, type Candidate, fieldsFor, fileOf, parseCandidate, programOf } from './candidates.ts'

/** Whether figures can be written there; what lies there stays until there are some. @throws SptError `io/…` */
export const checkWritable = (path: string): Promise<void> =>
  withFileErrors(path, 'write', () => checkReplaceable(path))

/**
 * Schedules that were asked for: their form, file, kernel, name and number of arguments, and that one of `suites` times
 * them; there are `all`.
 * @throws SptError `bench/…`, `api/unknown-schedule`, `schedule/arguments`, and as the file is refused
 */
export async function checkSchedules(
  texts: readonly string[],
  suites: readonly string[],
  all: readonly string[],
): Promise<void> {
  for (const text of texts) {
    const asked = parsed(text)
    const path = fileOf(asked)
    if (!existsSync(path))
      fail({
        code: 'bench/no-file',
        message: `there is no file '${asked.file}', here or in the package's kernels`,
        lookup: { name: asked.file, candidates: files(asked.file) },
        expected: FORM,
      })
    const { program } = await withFileErrors(path, 'read', () => programOf(asked))
    if (!program.kernels.includes(asked.kernel))
      fail({
        code: 'bench/no-kernel',
        message: `'${asked.file}' has no kernel ${asked.kernel}`,
        lookup: { name: asked.kernel, candidates: program.kernels },
        expected: FORM,
      })
    const kernel = program.kernel(asked.kernel)
    try {
      if (kernel.dispatches.includes(asked.schedule)) kernel.schedule(asked.schedule, ...asked.args)
      else if (asked.schedule !== '') kernel.steps(asked.schedule, ...asked.args)
    } catch (error) {
      if (error instanceof SptError) error.sources ??= program.sources
      throw error
    }
    const owners = new Set(fieldsFor(asked).map((field) => suiteOf(field, all)))
    const times = (suite: string): boolean => owners.has(suite)
    if (!suites.some(times))
      fail({
        code: 'bench/no-suite',
        message: `no suite of ${suites.join(', ')} times kernel ${asked.kernel}`,
        expected: all.filter(times).join(' or ') || 'a kernel of bench/candidates.json',
        hint: 'a kernel takes the place of those whose names begin with the same word: spmm_mine that of spmm',
      })
  }
}

/** Whose field it is: `dynamic-attention-blocks-32` is of `dynamic-attention`, not of `dynamic`. */
const suiteOf = (field: string, all: readonly string[]): string | undefined =>
  all
    .filter((suite) => field === suite || field.startsWith(`${suite}-`))
    .sort((a, b) => b.length - a.length)[0]

const FORM = 'FILE.spt:kernel.schedule(1, 2)'

function parsed(text: string): Candidate {
  try {
    return parseCandidate(text, ANY)
  } catch {
    return fail({ code: 'bench/schedule', message: `--schedule ${text} names no schedule`, expected: FORM })
  }
}

/** Programs that may have been meant. */
function files(asked: string): string[] {
  const folder = dirname(asked)
  const here = existsSync(folder)
    ? readdirSync(folder).map((f) => (folder === '.' ? f : `${folder}/${f}`))
    : []
  return [...here, ...readdirSync(packageFile('kernels'))].filter((f) => extname(f) === '.spt')
}
