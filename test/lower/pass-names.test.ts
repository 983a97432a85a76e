/** The naming rule of passes (`passes.ts`): the function of a pass contains the words of its name. */
import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { LAUNCH_OUTLINING, LAUNCH_PASSES, LOOP_PASSES, PASSES, POSITIONS } from '../../src/lower/passes.ts'

const LISTS = readFileSync('src/lower/passes.ts', 'utf8')
const PIPELINE = readFileSync('src/lower/pipeline.ts', 'utf8')

/** The functions that a file imports from `./FOLDER/MODULE.ts`, with the name of the module. */
const importsIn = (text: string): readonly (readonly [name: string, module: string])[] =>
  [...text.matchAll(/^import \{([^}]*)\} from '\.\/(?:[\w-]+\/)?([\w-]+)\.ts'$/gm)].flatMap(
    ([, names, module]) => (names!.match(/\b[a-z]\w*/g) ?? []).map((name) => [name, module!] as const),
  )

const stem = (word: string): string => word.slice(0, 3)

/** Returns the modules of the functions whose names contain the words of a pass. */
const modulesOf = (name: string, text: string, isCalled: (f: string) => boolean): readonly string[] =>
  importsIn(text)
    .filter(([f]) => isCalled(f) && name.split('-').every((w) => f.toLowerCase().includes(stem(w))))
    .map(([, module]) => module)

test.each([...LOOP_PASSES, ...LAUNCH_PASSES].map((p) => [p.name, p] as const))(
  'pass %s has the name of its function, in a file with the name of the pass or of one that shares its mechanism',
  (name, { run }) => {
    const isCalled = (f: string): boolean => f === run.name || new RegExp(`\\b${f}\\b`).test(String(run))
    const modules = modulesOf(name, LISTS, isCalled)
    expect(modules).toHaveLength(1)
    expect(PASSES).toContain(modules[0])
  },
)

test('the pass that outlines launches has the name of its file and of its function', () => {
  expect(modulesOf(LAUNCH_OUTLINING, PIPELINE, () => true)).toEqual([LAUNCH_OUTLINING])
})

test('the pass to Stage II has the name of its folder, and no two passes share a name', () => {
  expect(existsSync(`src/lower/${POSITIONS}/index.ts`)).toBe(true)
  expect(new Set(PASSES).size).toBe(PASSES.length)
})
