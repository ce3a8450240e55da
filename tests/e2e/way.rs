//! The two transports that a turn may take, so that one test can speak of both.

use crate::world::Setup;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Socket,
    Direct,
}

impl Way {
    pub const BOTH: [Way; 2] = [Way::Socket, Way::Direct];

    pub fn transport(self) -> &'static str {
        match self {
            Way::Socket => "auto",
            Way::Direct => "http",
        }
    }

    /// A world whose turns take this way.
    pub fn setup(self) -> Setup {
        let transport = self.transport();
        let provider = |name: &str, kind: &str| {
            format!(
                "[providers.{name}]\nkind = \"{kind}\"\nbase_url = \"{{{name}}}\"\ntransport = \"{transport}\"\n\
                 [[providers.{name}.accounts]]\nname = \"main\"\ncredential = \"client\"\n"
            )
        };
        Setup::new().config(&(provider("openai", "openai") + &provider("chatgpt", "chatgpt")))
    }
}
