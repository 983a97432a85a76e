// The kernel checks no types: the cells of each notebook are one module for tsc.
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, relative, resolve } from 'node:path'
import { codeCells, readNotebook, textOf } from './document.mjs'

const root = resolve(import.meta.dirname, '../..')

/** Mistakes of types, with the cell and the line in it. */
export function typeErrors(paths) {
  const folder = join(root, 'node_modules/.cache/notebooks')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const modules = new Map(paths.map((path) => [basename(path).replace('.ipynb', '.ts'), moduleOf(path)]))
  for (const [name, { text }] of modules) writeFileSync(join(folder, name), text)
  const up = relative(folder, root)
  const compilerOptions = {
    noEmit: true,
    incremental: false,
    noUnusedLocals: false,
    // So that `../examples/` is what it is to a notebook.
    rootDirs: ['..', up],
    paths: Object.fromEntries(Object.entries(EXPORTED).map(([name, file]) => [name, [`${up}/${file}`]])),
  }
  const config = join(folder, 'tsconfig.json')
  writeFileSync(
    config,
    JSON.stringify({ extends: `${up}/tsconfig.json`, compilerOptions, include: ['*.ts'] }),
  )
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const { stdout } = spawnSync(process.execPath, [tsc, '-p', config, '--pretty', 'false'], {
    encoding: 'utf8',
    cwd: folder,
  })
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) =>
      line.replace(/^([\w.-]+)\((\d+),(\d+)\)/, (all, name, row, column) => {
        const module = modules.get(name)
        return module ? `${module.path} ${module.where(Number(row))}:${column}` : all
      }),
    )
}

/** As `exports` of package.json has them. */
const EXPORTED = {
  sparsetile: 'dist/src/node.d.ts',
  'sparsetile/notebook': 'dist/src/notebook.d.ts',
  'sparsetile/search': 'dist/src/search.d.ts',
  'sparsetile/prune': 'dist/src/prune.d.ts',
  'sparsetile/families': 'dist/bench/families.d.ts',
}

function moduleOf(path) {
  const cells = codeCells(readNotebook(path)).map((c) => `${textOf(c.source)}\n`)
  const starts = []
  let line = 1
  for (const cell of cells) {
    starts.push(line)
    line += cell.split('\n').length - 1
  }
  const where = (row) => {
    const k = starts.findLastIndex((start) => start <= row)
    return `cell ${k + 1} line ${row - starts[k] + 1}`
  }
  return { path, text: `${cells.join('')}export {}\n`, where }
}
