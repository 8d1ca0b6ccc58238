//! Enums whose variants have names, stated once.

/// Declares an enum with a name for each variant: `Variant = "name"`.
macro_rules! named {
    ($(#[$of_type:meta])* $visibility:vis enum $type:ident {
        $($(#[$of_variant:meta])* $variant:ident = $name:literal),+ $(,)?
    }) => {
        $(#[$of_type])*
        $visibility enum $type {
            $($(#[$of_variant])* $variant,)+
        }

        impl $type {
            /// All of them, in their order.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Its name in tables, facts and options.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

/// The same with what each variant says to readers of a result: `Variant = "name": "text"`.
macro_rules! explained {
    ($(#[$of_type:meta])* $visibility:vis enum $type:ident {
        $($(#[$of_variant:meta])* $variant:ident = $name:literal: $text:literal),+ $(,)?
    }) => {
        named! {
            $(#[$of_type])*
            $visibility enum $type {
                $($(#[$of_variant])* $variant = $name),+
            }
        }

        impl $type {
            /// What it means, and its consequences for the result.
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }
    };
}
