//! The one currency: a PTX module and its recipe.

use std::path::Path;

use ptx::{Function, Module, Parameter, Parsed, nearest};

use crate::error::{Error, Fault};
use crate::recipe::{self, Argument, Launch, Recipe};
use crate::resolve::Limits;
use crate::resolved::{self, ArgumentValue, Resolved};
use crate::{hash, header, module_text};

/// The parameter of kernels that assert something of themselves, as `tile` calls it.
const REPORT: &str = "report";

/// A PTX module, the text it stands in, and how to launch it.
///
/// ```
/// use launch::{Kernel, Limits};
///
/// let kernel = Kernel::parse("nothing.ptx", r#"
/// //@ [[launch]]
/// //@ grid = [1, 1, 1]
/// //@ block = [32, 1, 1]
/// .version 7.0
/// .target sm_80
/// .address_size 64
/// .visible .entry nothing() { ret; }
/// "#)?;
/// assert_eq!(kernel.name, "nothing");
/// assert_eq!(kernel.resolve(&Limits::default())?.launches.len(), 1);
/// # Ok::<(), launch::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Kernel {
    /// What reports call it: the stem of its file, or the generator's name.
    pub name: String,
    /// Module, text and spans.
    pub parsed: Parsed,
    /// Buffers and launches.
    pub recipe: Recipe,
}

impl Kernel {
    /// A kernel from parts that are already read, such as a `.ptx` and command line flags.
    pub fn new(name: impl Into<String>, parsed: Parsed, recipe: Recipe) -> Kernel {
        Kernel { name: name.into(), parsed, recipe }
    }

    /// Reads a `.ptx` text that carries its recipe in its header; `path` is its name in errors.
    pub fn parse(path: &str, text: &str) -> Result<Kernel, Error> {
        let message = "no recipe: expected leading lines that begin with `//@ `, a .toml of the same name beside it, or, on the \
                       command line, `--grid`, `--block` and an `--arg` for each parameter";
        let missing = || Error::File { path: path.into(), message: message.into() };
        let recipe = header::read(path, text)?.ok_or_else(missing)?;
        Kernel::with_text(path, text, recipe)
    }

    /// Reads a `.ptx` text for a recipe that was read elsewhere; the kernel's text is for the target that the recipe
    /// names.
    pub fn with_text(path: &str, text: &str, recipe: Recipe) -> Result<Kernel, Error> {
        let source = match recipe.target {
            Some(target) => ptx::Source::new(path, module_text::retargeted(path, text, target)?),
            None => ptx::Source::new(path, text),
        };
        let parsed = ptx::parse(&source)?;
        Ok(Kernel::new(stem(Path::new(path)), parsed, recipe))
    }

    /// A kernel that a program made: its text is what `veriflash ptx` prints, header included.
    pub fn generated(name: impl Into<String>, module: &Module, recipe: Recipe) -> Result<Kernel, Error> {
        let name = name.into();
        let text = format!("{}{}", recipe.to_header(), ptx::print(module));
        let parsed = ptx::parse(&ptx::Source::new(format!("{name}.ptx"), text))?;
        Ok(Kernel { name, parsed, recipe })
    }

    /// Opens a `.ptx` with a header, a `.ptx` with a `.toml` of the same stem beside it, or such a `.toml`.
    pub fn open(path: &Path) -> Result<Kernel, Error> {
        let text = module_text::read(path)?;
        let name = path.display().to_string();
        if path.extension().is_some_and(|extension| extension == "toml") {
            return Kernel::beside(path, Recipe::parse(&name, &text)?);
        }
        let recipe_path = module_text::unpacked_name(path).with_extension("toml");
        match header::read(&name, &text)? {
            None if recipe_path.is_file() => {
                let recipe = Recipe::parse(&recipe_path.display().to_string(), &module_text::read(&recipe_path)?)?;
                Kernel::with_text(&name, &text, recipe)
            }
            _ => Kernel::parse(&name, &text),
        }
    }

    /// The kernel whose PTX a `.toml` names, or that has the same stem.
    fn beside(path: &Path, recipe: Recipe) -> Result<Kernel, Error> {
        let ptx = match &recipe.ptx {
            Some(file) => path.parent().map(Path::to_path_buf).unwrap_or_default().join(file),
            None => path.with_extension("ptx"),
        };
        Kernel::with_text(&ptx.display().to_string(), &module_text::read(&ptx)?, recipe)
    }

    /// The module.
    pub fn module(&self) -> &Module {
        &self.parsed.module
    }

    /// The module's hash: of its canonical text, so that comments and spacing are not part of it.
    pub fn hash(&self) -> String {
        hash::hex(ptx::print(self.module()).as_bytes())
    }

    /// The PTX file, as errors and reports name it.
    pub fn file(&self) -> &str {
        &self.parsed.source.name
    }

    /// The entry that a launch names, or the only one.
    pub fn entry(&self, launch: &resolved::Launch) -> Result<&Function, Error> {
        self.find_entry(launch.entry.as_deref()).map_err(|message| Error::Recipe { place: None, message })
    }

    fn find_entry(&self, name: Option<&str>) -> Result<&Function, String> {
        let entries: Vec<&Function> = self.module().entries().collect();
        let names = || entries.iter().map(|function| function.name.as_str());
        let Some(name) = name else {
            if entries.is_empty() {
                return Err("the module has no entry: expected a `.entry`, which a launch begins with; write one, or name another file".into());
            }
            let [only] = entries[..] else {
                let list = names().collect::<Vec<_>>().join(", ");
                return Err(format!("the module has {} entries: name one with `entry` ({list})", entries.len()));
            };
            return Ok(only);
        };
        entries.iter().find(|function| function.name == name).copied().ok_or_else(|| match nearest(name, names()) {
            Some(near) => format!("the module has no entry `{name}`: did you mean `{near}`?"),
            None => {
                format!("the module has no entry `{name}`: expected one of {}", names().collect::<Vec<_>>().join(", "))
            }
        })
    }

    /// Resolves the recipe and checks its arguments against the parameters of the entries.
    pub fn resolve(&self, limits: &Limits) -> Result<Resolved, Error> {
        let resolved = self.recipe.resolve(limits)?;
        for (written, launch) in self.recipe.launches.iter().zip(&resolved.launches) {
            self.check_launch(written, launch).map_err(|fault| self.recipe.source.error(fault))?;
        }
        Ok(resolved)
    }

    fn check_launch(&self, written: &Launch, launch: &resolved::Launch) -> Result<(), Fault> {
        let at_launch = |message: String| Fault::new(written.spot, message);
        let entry = self.find_entry(launch.entry.as_deref()).map_err(at_launch)?;
        check_count(entry, written).map_err(at_launch)?;
        for (index, (argument, parameter)) in launch.args.iter().zip(&entry.parameters).enumerate() {
            let name = argument.name.as_deref().map_or_else(|| index.to_string(), |name| format!("{index} (`{name}`)"));
            check_argument(&argument.value, parameter)
                .map_err(|message| Fault::new(written.args[index].spot, format!("argument {name} {message}")))?;
        }
        Ok(())
    }
}

fn check_count(entry: &Function, written: &Launch) -> Result<(), String> {
    let (expected, found) = (entry.parameters.len(), written.args.len());
    let help = match (entry.parameters.get(found), written.args.get(expected)) {
        (Some(_), _) if lacks_report(entry, written) => {
            format!("the first for `{REPORT}`, a buffer of u64 (`[assertions]` names it)")
        }
        (Some(last), _) => format!("add one for `{}`", left_out(entry, written).unwrap_or(&last.name)),
        (None, Some(_)) => format!("remove {}", found - expected),
        (None, None) => return Ok(()),
    };
    Err(format!("launch of `{}` has {found} arguments: expected {expected}, {help}", entry.name))
}

/// The first parameter in whose place an argument stands that has the name of a later one.
fn left_out<'e>(entry: &'e Function, written: &Launch) -> Option<&'e str> {
    let names: Vec<&str> = entry.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    let given = written.args.iter().zip(names.iter().enumerate());
    let later = |(name, at): (&str, usize)| names[at + 1..].contains(&name);
    let (_, (_, parameter)) = given
        .into_iter()
        .find(|(argument, (at, _))| argument.name.as_deref().is_some_and(|name| later((name, *at))))?;
    Some(parameter)
}

/// Whoever builds with checks gets a parameter that no line of the kernel speaks of, before all others.
fn lacks_report(entry: &Function, written: &Launch) -> bool {
    let is_report = |argument: &Argument| {
        let named = argument.name.as_deref() == Some(REPORT);
        named || matches!(&argument.value, recipe::ArgumentValue::Buffer { buffer, .. } if buffer == REPORT)
    };
    let has_parameter = entry.parameters.first().is_some_and(|parameter| parameter.name == REPORT);
    has_parameter && !written.args.first().is_some_and(is_report)
}

fn check_argument(value: &ArgumentValue, parameter: &Parameter) -> Result<(), String> {
    let expected = parameter.bytes();
    if value.size() as u64 != expected {
        return Err(format!("has {} bytes: parameter `{}` has {expected}", value.size(), parameter.name));
    }
    let alignment = value.alignment() as u32;
    if !parameter.align.is_multiple_of(alignment) {
        let (name, align) = (&parameter.name, parameter.align);
        return Err(format!("needs alignment {alignment}: parameter `{name}` has alignment {align}"));
    }
    check_pointer(value, parameter)
}

/// `.ptr .align 16` is a promise about the address; buffers themselves are aligned to 256 bytes.
fn check_pointer(value: &ArgumentValue, parameter: &Parameter) -> Result<(), String> {
    match (value, parameter.pointer) {
        (ArgumentValue::Pointer { offset, .. }, Some((_, align))) if align > 0 && offset % u64::from(align) != 0 => {
            Err(format!("points to offset {offset}: parameter `{}` promises alignment {align}", parameter.name))
        }
        _ => Ok(()),
    }
}

fn stem(path: &Path) -> String {
    module_text::unpacked_name(path)
        .file_stem()
        .map_or_else(|| path.display().to_string(), |stem| stem.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const HEADER: &str = r#"//@ [buffer.x]
//@ type = "f32"
//@ shape = [64]
//@ [[launch]]
//@ grid = [1, 1, 1]
//@ block = [32, 1, 1]
//@ args = [{ buffer = "x", offset = 16 }, { u32 = 64, name = "count" }]
"#;
    const BODY: &str = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry scale(.param .u64 .ptr .global .align 16 x, .param .u32 n) { ret; }\n";

    fn failure(from: &str, to: &str) -> String {
        let text = format!("{HEADER}{BODY}");
        assert!(text.contains(from), "{from}");
        let kernel = Kernel::parse("scale.ptx", &text.replace(from, to));
        kernel.and_then(|kernel| kernel.resolve(&Limits::default())).unwrap_err().to_string()
    }

    #[test]
    fn arguments_meet_parameters() {
        let kernel = Kernel::parse("scale.ptx", &format!("{HEADER}{BODY}")).unwrap();
        let resolved = kernel.resolve(&Limits::default()).unwrap();
        assert_eq!(kernel.entry(&resolved.launches[0]).unwrap().name, "scale");
    }

    struct Fixed;

    impl resolved::Placement for Fixed {
        type Error = Error;

        fn address(&mut self, buffer: usize) -> Result<u64, Error> {
            Ok(0x1000 * (buffer as u64 + 1))
        }

        fn map(&mut self, _: &crate::tensor_map::ResolvedMap) -> Result<[u8; resolved::MAP_BYTES], Error> {
            Ok([0xff; resolved::MAP_BYTES])
        }
    }

    #[test]
    fn parameters_are_aligned_each_to_itself() {
        let body = BODY.replace("(.param", "(.param .u32 n0, .param").replace(", .param .u32 n)", ", .param .u16 h)");
        let args = r#"args = [{ u32 = 7 }, { buffer = "x", offset = 16 }, { u16 = 9 }]"#;
        let header = HEADER.replace(&HEADER[HEADER.find("args").unwrap()..], args);
        let kernel = Kernel::parse("scale.ptx", &format!("{header}\n{body}")).unwrap();
        let resolved = kernel.resolve(&Limits::default()).unwrap();
        let launch = &resolved.launches[0];
        let block = launch.parameters(kernel.entry(launch).unwrap(), &mut Fixed).unwrap();
        assert_eq!(block, [7, 0, 0, 0, 0, 0, 0, 0, 0x10, 0x10, 0, 0, 0, 0, 0, 0, 9, 0]);
    }

    #[test]
    fn mismatches_name_the_argument() {
        insta::assert_snapshot!(failure("u32 = 64", "u64 = 64"), @"scale.ptx:7:44: argument 1 (`count`) has 8 bytes: parameter `n` has 4");
        insta::assert_snapshot!(failure(", { u32 = 64, name = \"count\" }", ""), @"scale.ptx:4:5: launch of `scale` has 1 arguments: expected 2, add one for `n`");
        insta::assert_snapshot!(failure("{ buffer = \"x\", offset = 16 }, { u32 = 64, name = \"count\" }", "{ u32 = 64, name = \"n\" }"), @"scale.ptx:4:5: launch of `scale` has 1 arguments: expected 2, add one for `x`");
        insta::assert_snapshot!(failure("scale(.param", "scale(.param .u64 report, .param"), @"scale.ptx:4:5: launch of `scale` has 2 arguments: expected 3, the first for `report`, a buffer of u64 (`[assertions]` names it)");
        insta::assert_snapshot!(failure("[{ buffer", "[{ null = true }, { buffer"), @"scale.ptx:4:5: launch of `scale` has 3 arguments: expected 2, remove 1");
        insta::assert_snapshot!(failure("offset = 16", "offset = 8"), @"scale.ptx:7:13: argument 0 points to offset 8: parameter `x` promises alignment 16");
        insta::assert_snapshot!(failure("grid = [1", "entry = \"scales\"\n//@ grid = [1"), @"scale.ptx:4:5: the module has no entry `scales`: did you mean `scale`?");
    }

    #[test]
    fn comments_are_not_part_of_the_hash() {
        let plain = Kernel::parse("a.ptx", &format!("{HEADER}{BODY}")).unwrap();
        let commented = Kernel::parse("b.ptx", &format!("// why\n{HEADER}// what\n{BODY}")).unwrap();
        let changed = Kernel::parse("c.ptx", &format!("{HEADER}{}", BODY.replace("scale", "scales"))).unwrap();
        assert_eq!(plain.hash(), commented.hash());
        assert_ne!(plain.hash(), changed.hash());
        assert_eq!(plain.recipe.hash(), commented.recipe.hash());
    }

    #[test]
    fn generated_text_is_a_complete_case() {
        let kernel = Kernel::parse("scale.ptx", &format!("{HEADER}{BODY}")).unwrap();
        let printed = Kernel::generated("scale", kernel.module(), kernel.recipe.clone()).unwrap();
        let again = Kernel::parse("again.ptx", &printed.parsed.source.text).unwrap();
        assert_eq!(again.recipe, kernel.recipe);
        assert_eq!(again.module(), kernel.module());
    }

    #[test]
    fn a_recipe_names_another_target() {
        let header = format!("//@ target = \"sm_90a\"\n{HEADER}");
        let kernel = Kernel::parse("scale.ptx", &format!("{header}{BODY}")).unwrap();
        assert_eq!(kernel.module().target.to_string(), "sm_90a");
        assert_eq!(kernel.parsed.source.text, format!("{header}{}", BODY.replace("sm_80", "sm_90a")));
        let printed = Kernel::generated("scale", kernel.module(), kernel.recipe.clone()).unwrap();
        assert_eq!(Kernel::parse("again.ptx", &printed.parsed.source.text).unwrap().hash(), kernel.hash());
        let unknown = Kernel::parse("scale.ptx", &format!("//@ target = \"hopper\"\n{BODY}")).unwrap_err();
        insta::assert_snapshot!(unknown, @"scale.ptx:1:14: unknown target `hopper`: expected one such as `sm_80`");
    }

    #[test]
    fn files_find_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let toml = HEADER.replace("//@ ", "");
        fs::write(path("one.ptx"), BODY).unwrap();
        fs::write(path("one.toml"), &toml).unwrap();
        fs::write(path("two.toml"), format!("ptx = \"one.ptx\"\n{toml}")).unwrap();
        fs::write(path("three.ptx"), format!("{HEADER}{BODY}")).unwrap();
        let hashes: Vec<_> = ["one.ptx", "one.toml", "two.toml", "three.ptx"]
            .iter()
            .map(|name| Kernel::open(&path(name)).unwrap())
            .map(|kernel| (kernel.hash(), kernel.recipe.hash()))
            .collect();
        assert!(hashes.iter().all(|pair| *pair == hashes[0]));
        fs::write(path("four.ptx"), BODY).unwrap();
        assert!(Kernel::open(&path("four.ptx")).unwrap_err().to_string().contains("no recipe"));
        assert!(Kernel::open(folder.path()).unwrap_err().to_string().contains("is a folder"));
    }
}
