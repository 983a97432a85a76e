/** The naming rule of passes (`passes.ts`): a pass has the name of its file, and its function contains the same words. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { expect, test } from 'vitest'
import { LAUNCH_OUTLINING, LAUNCH_PASSES, LOOP_PASSES, PASSES, POSITIONS } from '../../src/lower/passes.ts'

const LISTS = readFileSync('src/lower/passes.ts', 'utf8')
const PIPELINE = readFileSync('src/lower/pipeline.ts', 'utf8')

const FILES = readdirSync('src/lower', { recursive: true, encoding: 'utf8' }).map((f) => basename(f, '.ts'))

/** The functions that a file imports from `./FOLDER/MODULE.ts`. */
const importedFrom = (text: string, module: string): readonly string[] =>
  [...text.matchAll(/^import \{([^}]*)\} from '\.\/(?:[\w-]+\/)?([\w-]+)\.ts'$/gm)]
    .filter(([, , from]) => from === module)
    .flatMap(([, names]) => names!.match(/\w+/g)!)

const stem = (word: string): string => word.slice(0, 3)

function expectNamed(name: string, functions: readonly string[]): void {
  expect(FILES.filter((f) => f === name)).toHaveLength(1)
  const verbForm = functions.filter((f) => name.split('-').every((w) => f.toLowerCase().includes(stem(w))))
  expect(verbForm, `${functions.join(', ')} in words of ${name}`).toHaveLength(1)
}

test.each([...LOOP_PASSES, ...LAUNCH_PASSES].map((p) => [p.name, p] as const))(
  'pass %s has the name of its file and of its function',
  (name, { run }) => {
    const called = importedFrom(LISTS, name).filter((f) => new RegExp(`\\b${f}\\b`).test(String(run)))
    expectNamed(name, called)
  },
)

test('the pass that outlines launches has the name of its file and of its function', () => {
  expectNamed(LAUNCH_OUTLINING, importedFrom(PIPELINE, LAUNCH_OUTLINING))
})

test('the pass to Stage II has the name of its folder, and no two passes share a name', () => {
  expect(existsSync(`src/lower/${POSITIONS}/index.ts`)).toBe(true)
  expect(new Set(PASSES).size).toBe(PASSES.length)
})
