/** Files of the package, next to the page: kernels and dispatch tables as text, with their parse trees. */
import type { Source } from '../../src/ast/diagnostics/span.ts'
import type { Trees } from '../../src/ast/imports/resolve-imports.ts'
import { decodeTree } from '../../src/io/package/tree-encoding.ts'
import { scope } from './scope.ts'

const PACKAGE = 'sparsetile/'
const BASE = new URL('package/', scope.location.href)

const texts = new Map<string, Promise<string>>()
const trees = new Map<string, Promise<string | null>>()

/** A file of the page. Rejects with the status if it is missing, also where a server answers with a page instead. */
export async function pageFile(path: string): Promise<Response> {
  const response = await fetch(new URL(path, BASE)).catch(() => null)
  if (!response) throw new Error('the network does not answer')
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`.trim())
  if (response.headers.get('content-type')?.includes('text/html'))
    throw new Error('the page has no such file')
  return response
}

/** Remembers successes: a failed download is repeated. */
function once<T>(memory: Map<string, Promise<T>>, key: string, load: () => Promise<T>): Promise<T> {
  const known = memory.get(key)
  if (known) return known
  const loading = load()
  memory.set(key, loading)
  loading.catch(() => memory.delete(key))
  return loading
}

/** Reads `sparsetile/kernels/formats.spt` and other programs of the package. Other paths are rejected. */
export async function readText(path: string): Promise<string> {
  if (!path.startsWith(PACKAGE))
    throw new Error('the playground has a single file; import files of the package: "sparsetile/kernels/…"')
  const file = path.slice(PACKAGE.length)
  void tree(file)
  return once(texts, file, async () => (await pageFile(file)).text())
}

const tree = (file: string): Promise<string | null> =>
  once(trees, file, () =>
    pageFile(`${file}.tree`).then(
      (response) => response.text(),
      () => null,
    ),
  )

/** The first example, which is shown before the parser is needed. */
const START = 'start.spt'
const isStart = async (text: string): Promise<boolean> =>
  (await once(texts, START, async () => (await pageFile(START)).text()).catch(() => null)) === text

/** Trees of the package's files and of the first example, made with the page; a text without one is parsed. */
export const packageTrees: Trees = {
  async load(source: Source) {
    const isPackage = source.name.startsWith(PACKAGE)
    if (!isPackage && !(await isStart(source.text))) return undefined
    const encoded = await tree(isPackage ? source.name.slice(PACKAGE.length) : START)
    return encoded ? decodeTree(encoded, source) : undefined
  },
  async store() {},
}
