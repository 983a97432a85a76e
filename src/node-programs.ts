/** Programs in Node: the compiler, which the first `load` imports, with the files of the package. */
import { verifierFor } from './api/programs/lazy-verifier.ts'
import { isOddPath, isPath, type LoadOptions } from './api/programs/load-options.ts'
import { loadWith, type SptProgram } from './api/programs/program.ts'
import { inPackage, type ReadText, readPackaged, refuseImport, rooted } from './ast/imports/resolve-path.ts'
import { packagedFormatsNamed } from './io/package/package.ts'
import { readProgramText, refuseFolder, rootedIn, shippedText } from './io/package/program-text.ts'
import { programTrees } from './io/package/program-trees.ts'
import { installStoredModels } from './search/calibrate/stored.ts'

export { instructionTest } from './instruction-tests/instruction-test.ts'

export interface NodeLoadOptions extends LoadOptions {
  /**
   * The invariants of each stage are checked after every step and pass; what breaks one is named by an `InternalError`.
   * Default: `SPT_VERIFY=1`.
   */
  readonly verify?: boolean | undefined
}

/** Installs the sources of messages and predictions: the files of the package, and the user's cache. */
export function installPackageFiles(): void {
  readPackaged(packagedFormatsNamed)
  installStoredModels()
}

/** Implements `load`: reads a path or source text from the file system or with `read`. */
export async function loadProgram(textOrPath: string, options: NodeLoadOptions): Promise<SptProgram> {
  installPackageFiles()
  const { read, root, verify = process.env.SPT_VERIFY === '1' } = options
  const isFile = isPath(textOrPath)
  if (!read && isOddPath(textOrPath)) await refuseFolder(textOrPath)
  return loadWith(textOrPath, options, {
    files: withPackage(read ?? readProgramText),
    imports: withPackage(
      root !== undefined
        ? read
          ? rooted(root, read)
          : await rootedIn(root)
        : (read ?? (isFile ? readProgramText : async (path) => refuseImport(path))),
    ),
    trees: programTrees(),
    shipped: shippedText,
    observer: await verifierFor(verify),
  })
}

const withPackage =
  (read: ReadText): ReadText =>
  (path) =>
    inPackage(path) ? readProgramText(path) : read(path)
